import { randomBytes } from "node:crypto";
import { systemClock } from "../../../../src/base/clock.js";
import { within } from "../../../../src/base/deadline.js";
import { workspaceOf } from "../../../support/browser/browser-processes.js";
import { zipBytes } from "../../../support/archive/zip-bytes.js";
import { connectRaw, type RawCdp } from "../../../support/gateway/raw-cdp.js";
import { Page } from "../../egress/corpus/page.js";
import { type Daemon, startDaemon, type Tier } from "../daemon.js";
import type { Kind } from "../../arguments.js";
import type { Outcome } from "../outcome.js";
import { processesOf } from "../programs.js";
import { type Part, partOf } from "../report.js";
import { openRememberingSite, type RememberingSite } from "./site.js";
import type { Holder, Trace } from "./trace.js";
import { traces } from "./traces.js";

/** `reset_on_release` of a pool. */
type Mode = "none" | "state" | "relaunch";
const modes: readonly Mode[] = ["none", "state", "relaunch"];

/** What takes longer hangs; a machine whose processors are busy is no reason. */
const stepLimitMs = 60_000;
const acquireLimitSeconds = 50;
/** Where nothing is reset the pages of both holders are open at once, which takes more than 1 GiB. */
const headlessMemory = "4GiB";

interface Trying {
  readonly daemon: Daemon;
  readonly site: RememberingSite;
  readonly kind: Kind;
  readonly mode: Mode;
  readonly only?: string;
}

/**
 * What one holder of a pool's browser leaves, and the next finds; first where nothing is reset, which shows
 * that it can be found.
 */
export async function trySuccessors(
  tier: Tier,
  kinds: readonly Kind[],
  only?: string,
): Promise<readonly Part[]> {
  const daemon = await startDaemon(tier);
  const site = await openRememberingSite();
  const parts: Part[] = [];
  try {
    const all = kinds.flatMap((kind) => modes.map((mode) => ({ kind, mode })));
    for (const each of all)
      parts.push(await tryMode(tier, { daemon, site, ...each, ...(only !== undefined && { only }) }));
  } finally {
    await site.close();
    await daemon.close();
  }
  return parts;
}

async function tryMode(tier: Tier, { daemon, site, kind, mode, only }: Trying): Promise<Part> {
  const wanted = traces.filter(
    ({ name, needsChromium, isReplaced }) =>
      (!isReplaced || mode !== "state") &&
      (!needsChromium || kind.engine === "chromium") &&
      (only === undefined || nameOf({ name }).includes(only)),
  );
  const pool = `p-${randomBytes(6).toString("hex")}`;
  await daemon.call("POST /browser_pools", {
    ...kind,
    ...(kind.headless && { memory: headlessMemory }),
    name: pool,
    size: 1,
    reset_on_release: mode,
  });
  const lending = { daemon, site, pool, nonce: `n${randomBytes(6).toString("hex")}` };
  const outcomes: Outcome[] = [];
  try {
    const first = await lend(lending);
    const failed = await leaveAll(wanted, first);
    const pids = await processesOf(first.root);
    await first.giveBack();
    const next = await lend(lending);
    for (const trace of wanted)
      outcomes.push(judged(trace, mode, failed.get(trace) ?? (await find(trace, next))));
    const left = (await processesOf(next.root)).filter((pid) => pids.includes(pid));
    outcomes.push(judged(process, mode, mode === "state" && left.length === 0 ? replaced : left.length > 0));
    await next.giveBack();
  } finally {
    await daemon.call(`DELETE /browser_pools/${pool}`, { force: true });
  }
  const engine = kind.engine === "chromium" ? (kind.headless ? "headless" : "headful") : kind.engine;
  return partOf(`next holder, ${tier.name}, ${mode}, ${engine}`, {
    isPlain: mode === "none",
    outcomes,
    corpus: [...wanted, process].map((trace) => ({
      ...trace,
      name: nameOf(trace),
      vector: "CDP",
      run: async () => {},
    })),
    hasRoot: true,
  });
}

const nameOf = ({ name }: Pick<Trace, "name">): string => `next holder: ${name}`;

const process: Trace = {
  name: "processes",
  succeedsPlain: true,
  isAdmitted: "the browser goes on: docs/api.md, Reuse",
  leave: async () => {},
  find: async () => {},
};

/** Then `state` has cleared nothing. */
const replaced = "the browser was replaced, so nothing is proved";

function limited<Value>({ name }: Trace, { cdp }: Holder, work: Promise<Value>): Promise<Value> {
  const isOver = cdp.closed.then(({ code, reason }) => {
    throw new Error(`the connection was closed with ${code}: ${reason}`);
  });
  return within(systemClock, { what: name, limitMs: stepLimitMs }, Promise.race([work, isOver]));
}

/** What could not be left, and why: then nothing is proved by its absence. */
async function leaveAll(wanted: readonly Trace[], holder: Holder): Promise<ReadonlyMap<Trace, string>> {
  const failed = new Map<Trace, string>();
  for (const trace of wanted)
    await limited(trace, holder, trace.leave(holder)).catch(
      (error: Error) => void failed.set(trace, `could not be left: ${error.message}`),
    );
  return failed;
}

async function find(trace: Trace, holder: Holder): Promise<boolean | string> {
  return await limited(trace, holder, trace.find(holder)).then(
    (found) => Boolean(found),
    (error: Error) => `could not be looked for: ${error.message}`,
  );
}

/** `found` says why it is not known, where it is not. */
function judged(trace: Trace, mode: Mode, found: boolean | string): Outcome {
  const base = { name: nameOf(trace), vector: "CDP" as const, leaks: found === true ? ["it was found"] : [] };
  if (found === true && mode === "state" && trace.isAdmitted !== undefined)
    return { ...base, verdict: "admitted", note: trace.isAdmitted };
  if (found === true) return { ...base, verdict: "leaked" };
  return found === false ? { ...base, verdict: "held" } : { ...base, verdict: "unsure", note: found };
}

interface Lending {
  readonly daemon: Daemon;
  readonly site: RememberingSite;
  readonly pool: string;
  readonly nonce: string;
}

async function lend({ daemon, site, pool, nonce }: Lending): Promise<Holder & { giveBack(): Promise<void> }> {
  const lent = await daemon.call(`POST /browser_pools/${pool}/acquire`, {
    acquire_timeout_seconds: acquireLimitSeconds,
  });
  const id = String(lent["session_id"]);
  const cdp = await connectRaw(String(lent["cdp_ws_url"]));
  return {
    nonce,
    site,
    cdp,
    root: workspaceOf(daemon.scratchDirectory, id),
    open: (path = "/") => Page.open(cdp, site.origin + path),
    evaluate: (script) => evaluate(cdp, site, script),
    extend: (files) => extend(daemon, id, files),
    async giveBack() {
      await daemon.call(`POST /browser_pools/${pool}/release`, { session_id: id });
      await cdp.closed;
    },
  };
}

async function evaluate(cdp: RawCdp, { origin }: RememberingSite, script: string): Promise<unknown> {
  const page = await Page.open(cdp, `${origin}/`);
  try {
    return await page.evaluate(script);
  } finally {
    await cdp.send("Target.closeTarget", { targetId: page.target });
  }
}

async function extend(daemon: Daemon, id: string, files: Readonly<Record<string, string>>): Promise<unknown> {
  const zip = zipBytes(Object.entries(files).map(([name, content]) => ({ name, content })));
  const form = new FormData();
  form.append("extensions[0][name]", `e${randomBytes(6).toString("hex")}`);
  form.append("extensions[0][zip_file]", new Blob([new Uint8Array(zip)]), "extension.zip");
  return await daemon.call(`POST /browsers/${id}/extensions`, form);
}
