import { pause } from "../base/clock.js";
import { textOf } from "../base/log.js";
import type { Config } from "../config/config.js";
import { apiKeyFile } from "../config/data-directory.js";
import type { DaemonContext } from "./boot.js";
import type { PoolOperations } from "../pool/operations.js";

interface Announcing extends Pick<DaemonContext, "clock" | "log" | "stopping" | "say"> {
  readonly config: Config;
  readonly url: string;
  readonly installRoot: string;
  readonly pools: PoolOperations;
}

const lookEveryMs = 100;
const patienceMs = 120_000;

/**
 * Tells a person how to go on, once the first declared pool has an idle browser, or at once where none is
 * declared; says why it has none where that takes long.
 */
export function announce(announcing: Announcing): void {
  if (!announcing.say) return;
  void announceWhenIdle(announcing).catch((error: unknown) =>
    announcing.log.warn({ error: textOf(error) }, "readiness was not announced"),
  );
}

async function announceWhenIdle(announcing: Announcing): Promise<void> {
  const { config, pools, clock, log, stopping } = announcing;
  const name = String(config.pools[0]?.["name"] ?? "");
  if (name === "") return tell(announcing, onDemandCall(announcing.url));
  for (let waitedMs = 0; waitedMs < patienceMs && !stopping.aborted; waitedMs += lookEveryMs) {
    const pool = await pools.get(name);
    if (pool.kind === "done" && pool.value.counts.idle > 0)
      return tell(announcing, pooledCall(announcing.url, name));
    await pause(clock, lookEveryMs, stopping);
  }
  const pool = await pools.get(name);
  if (!stopping.aborted && pool.kind === "done")
    log.warn({ pool: name, fill: pool.value.fill }, "no browser is idle yet");
}

function tell({ config, url, installRoot, say }: Announcing, call: ExampleCall): void {
  say?.(
    banner({
      url,
      call,
      installRoot,
      keyFile: config.apiKey ? null : apiKeyFile(config),
      openHosts: config.egress.privateHosts,
    }),
  );
}

/** Quotes a text for a shell, whatever characters are in it. */
const quoted = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** How one comes by a browser, and gives it back. */
interface ExampleCall {
  readonly title: string;
  readonly url: string;
  /** What `url` is asked with; holds no single quote. */
  readonly body: string;
  /** Lines of JavaScript: the first declare what the others use, and `session`. */
  readonly begins: readonly string[];
  readonly ends: string;
}

const pooledCall = (url: string, pool: string): ExampleCall => ({
  title: "Acquire a browser",
  url: `${url}/browser_pools/${pool}/acquire`,
  body: "{}",
  begins: [
    `const post = (path, body) => fetch("${url}/browser_pools/${pool}/" + path, { method: "POST", headers, body: JSON.stringify(body) });`,
    `const session = await (await post("acquire", { acquire_timeout_seconds: 30 })).json();`,
  ],
  ends: `await post("release", { session_id: session.session_id, lease_id: session.lease_id, reuse: false });`,
});

const onDemandCall = (url: string): ExampleCall => ({
  title: "Launch a browser",
  url: `${url}/browsers`,
  body: '{"headless":true}',
  begins: [
    `const ask = (method, path, body) => fetch("${url}/browsers" + path, { method, headers, body: JSON.stringify(body) });`,
    `const session = await (await ask("POST", "", { headless: true })).json();`,
  ],
  ends: `await ask("DELETE", "/" + session.session_id, {});`,
});

interface BannerFacts {
  readonly url: string;
  readonly keyFile: string | null;
  readonly call: ExampleCall;
  readonly installRoot: string;
  /** Private hosts that are open to every browser whose network names none. */
  readonly openHosts: readonly string[];
}

/** What a person sees when it is ready: the address, where the key is, and two things to paste. */
const banner = ({ url, keyFile, call, installRoot, openHosts }: BannerFacts): string => `
Remuda is ready: ${url}${
  openHosts.length === 0
    ? ""
    : `
WARNING:        every page of every browser may reach ${openHosts.join(", ")}`
}
API key:        ${keyFile ?? "the one you gave in REMUDA_API_KEY"}
API pages:      ${url}/docs

${call.title}:

  curl -X POST ${call.url} \\
    -H "Authorization: Bearer ${keyFile === null ? "$REMUDA_API_KEY" : `$(cat ${quoted(keyFile)})`}" -H "Content-Type: application/json" -d '${call.body}'

Drive one with Playwright (save as try.mjs in ${installRoot}, then: ${keyFile === null ? "" : `REMUDA_API_KEY=$(cat ${quoted(keyFile)}) `}node try.mjs):

  import { chromium } from "playwright-core";
  const headers = { authorization: \`Bearer \${process.env.REMUDA_API_KEY}\`, "content-type": "application/json" };
  ${call.begins.join("\n  ")}
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  const page = browser.contexts()[0].pages()[0];
  await page.goto("data:text/html,<title>Hello from Remuda</title>");
  console.log(await page.title());
  await browser.close();
  ${call.ends}
`;
