import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { pause, systemClock } from "../../../src/base/clock.js";
import { factOf, pidsNow } from "../isolation/programs.js";
import type { Deployed } from "./overlay.js";
import type { Sites } from "./sites.js";

const run = promisify(execFile);

const limitMs = 120_000;

/** What one driven page has shown. */
export interface Driven {
  readonly rung: string;
  readonly network: string;
  readonly hasSandbox: boolean;
  readonly uid: number | undefined;
  readonly title: string;
  /** The pod itself comes to the address that no rule opens to browsers. */
  readonly isReachedByPod: boolean;
  /** What a page was answered there. */
  readonly deniedStatus: number | undefined;
  /** A filter of system calls lies on each renderer, and none says `--no-sandbox`. */
  readonly isRendererFiltered: boolean;
  readonly pictureBytes: number;
  readonly zombies: number;
}

interface Session {
  readonly session_id: string;
  readonly cdp_ws_url: string;
  readonly isolation?: {
    readonly rung?: string;
    readonly network?: string;
    readonly sandbox?: string;
    readonly uid?: number;
  };
}

async function call({ url, key }: Deployed, operation: string, body?: object): Promise<string> {
  const [method = "", path = ""] = operation.split(" ");
  const response = await fetch(url + path, {
    method,
    signal: AbortSignal.timeout(limitMs),
    headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${operation}: ${response.status} ${text.slice(0, 500)}`);
  return text;
}

/**
 * A node that has just started serves sockets a moment before it is registered, and until then no node has
 * room (529): asked again, as callers are told to.
 */
async function createSession(deployed: Deployed): Promise<Session> {
  const asked = { headless: true, memory: "1GiB", timeout_seconds: 600 };
  const until = systemClock.monotonic() + limitMs;
  for (;;) {
    const made = await call(deployed, "POST /browsers", asked).catch((error: Error) => error);
    if (typeof made === "string") return JSON.parse(made) as Session;
    if (!made.message.startsWith("POST /browsers: 529") || systemClock.monotonic() > until) throw made;
    await pause(systemClock, 200);
  }
}

/** Creates a session by the control, drives a page of it over CDP, and looks at its processes meanwhile. */
export async function drive(deployed: Deployed, { reached, denied }: Sites): Promise<Driven> {
  const session = await createSession(deployed);
  const browser = await chromium.connectOverCDP(session.cdp_ws_url, { timeout: limitMs });
  try {
    const page = browser.contexts()[0]?.pages()[0];
    if (!page) throw new Error("the browser has no page");
    await page.goto(reached.url, { timeout: limitMs });
    const title = await page.title();
    const picture = await page.screenshot({ timeout: limitMs });
    const isRendererFiltered = await areFiltered(await renderersOf(await deployed.node.pid()));
    const isReachedByPod = await isReachedIn(await deployed.node.pid(), denied.url);
    const refused = await page.goto(denied.url, { timeout: limitMs });
    const { rung = "", network = "", sandbox = "none", uid } = session.isolation ?? {};
    return {
      rung,
      network,
      uid,
      title,
      isReachedByPod,
      deniedStatus: refused?.status(),
      isRendererFiltered,
      hasSandbox: sandbox === "namespace",
      pictureBytes: picture.length,
      zombies: await zombiesOf(await deployed.node.pid()),
    };
  } finally {
    await browser.close();
    await call(deployed, `DELETE /browsers/${session.session_id}`);
  }
}

/** As any process of the pod would ask. */
const isReachedIn = (pid: number, url: string): Promise<boolean> =>
  run("nsenter", [
    "--target",
    String(pid),
    "--net",
    "--",
    process.execPath,
    "-e",
    "fetch(process.argv[1]).then(({ ok }) => process.exit(ok ? 0 : 1))",
    url,
  ]).then(
    () => true,
    () => false,
  );

const statusOf = (pid: number, field: string): Promise<string> =>
  factOf(pid, "status").then((text) => new RegExp(`^${field}:\\s*(.*)$`, "m").exec(text)?.[1] ?? "");

/** Every process below the pod's first. */
async function processesOf(first: number): Promise<number[]> {
  const parents = new Map(
    await Promise.all(
      (await pidsNow()).map(async (pid) => [pid, Number(await statusOf(pid, "PPid"))] as const),
    ),
  );
  const isBelow = (pid: number): boolean => {
    let at: number | undefined = pid;
    while (at !== undefined && at !== first) at = parents.get(at);
    return at === first;
  };
  return [...parents.keys()].filter(isBelow);
}

async function renderersOf(first: number): Promise<number[]> {
  const found = await Promise.all(
    (await processesOf(first)).map(async (pid) =>
      (await factOf(pid, "cmdline")).includes("--type=renderer") ? [pid] : [],
    ),
  );
  return found.flat();
}

/** Chromium's sandbox lays a filter of system calls on each renderer. */
async function areFiltered(renderers: readonly number[]): Promise<boolean> {
  const each = await Promise.all(
    renderers.map(
      async (pid) =>
        (await statusOf(pid, "Seccomp")) === "2" && !(await factOf(pid, "cmdline")).includes("--no-sandbox"),
    ),
  );
  return each.length > 0 && each.every(Boolean);
}

async function zombiesOf(first: number): Promise<number> {
  const states = await Promise.all((await processesOf(first)).map((pid) => statusOf(pid, "State")));
  return states.filter((state) => state.startsWith("Z")).length;
}

/** What the kernel says of the pod's daemon. */
export interface Standing {
  readonly uid: string;
  readonly capabilities: string;
  readonly seccomp: string;
  readonly isRootReadOnly: string;
  readonly hasMasks: string;
  readonly opened: string;
  readonly first: string;
}

export async function standingOf({ node }: Deployed): Promise<Standing> {
  const pid = await node.pid();
  const [uid = ""] = (await statusOf(pid, "Uid")).split(/\s/);
  const mounts = (await readFile(`/proc/${pid}/mountinfo`, "utf8"))
    .split("\n")
    .map((line) => line.split(" "));
  const root = mounts.find(([, , , , place]) => place === "/") ?? [];
  return {
    uid,
    capabilities: await statusOf(pid, "CapBnd"),
    seccomp: await statusOf(pid, "Seccomp"),
    isRootReadOnly: String(/\bro\b/.test(root[5] ?? "")),
    hasMasks: String(mounts.some(([, , , , place]) => place?.startsWith("/proc/"))),
    opened: await openedIn(pid),
    first: (await factOf(pid, "cmdline")).split("\0")[0] ?? "",
  };
}

/**
 * What masks would cover, asked for by root of the pod's own users with all capabilities that such a root can
 * have: more than anything in the pod has. Where the pod has the machine's users, it is the pod's user.
 */
async function openedIn(pid: number): Promise<string> {
  const [uid = "", gid = ""] = [await statusOf(pid, "Uid"), await statusOf(pid, "Gid")].map(
    (ids) => ids.split(/\s/)[0],
  );
  const hasOwnUsers = (await readlink(`/proc/${pid}/ns/user`)) !== (await readlink("/proc/self/ns/user"));
  const who = hasOwnUsers ? ["--user", "--setuid", "0", "--setgid", "0"] : ["--setuid", uid, "--setgid", gid];
  const script = `for each in sysrq-trigger sys/kernel/core_pattern sys/vm/drop_caches; do
      (: >> /proc/$each) 2>/dev/null && echo $each
    done
    (: < /proc/kcore) 2>/dev/null && echo kcore
    true`;
  const { stdout } = await run("nsenter", [
    "--target",
    String(pid),
    "--mount",
    "--pid",
    ...who,
    "--",
    "/bin/sh",
    "-c",
    script,
  ]);
  return stdout.trim().replaceAll("\n", " ") || "nothing";
}
