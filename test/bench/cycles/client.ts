import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type Browser, chromium } from "playwright-core";
import { systemClock } from "../../../src/base/clock.js";
import { groupSeconds, processSeconds } from "../support/cpu.js";
import { Line } from "../support/line.js";
import type { Lease } from "../support/load.js";
import { times } from "../support/runs.js";
import type { Done, Launching, Lending, Work } from "./exchange.js";

// Playwright would take the signal at which this process has to end.
const ownSignals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false } as const;

type Cycle = () => Promise<void>;

async function lender({ origin, key, pool }: Lending, url: string): Promise<Cycle> {
  const line = await Line.open(origin, key);
  const acquire = async (): Promise<Lease> => {
    for (;;) {
      const { status, body } = await line.post(`/browser_pools/${pool}/acquire`, "{}");
      if (status === 200) return JSON.parse(body) as Lease;
      // It has waited as long as a request may.
      if (status !== 204) throw new Error(`an acquire was answered ${status} ${body}`);
    }
  };
  return async () => {
    const { session_id, lease_id, cdp_ws_url } = await acquire();
    const browser = await chromium.connectOverCDP(cdp_ws_url);
    const page = browser.contexts()[0]?.pages()[0];
    if (page === undefined) throw new Error("the browser has no page");
    await visit(page, url);
    await browser.close();
    const { status } = await line.post(
      `/browser_pools/${pool}/release`,
      JSON.stringify({ session_id, lease_id }),
    );
    if (status >= 300) throw new Error(`a release was answered ${status}`);
  };
}

function launcher({ executable, sandbox }: Launching, url: string): Cycle {
  return async () => {
    const browser = await chromium.launch({
      executablePath: executable,
      chromiumSandbox: sandbox,
      headless: true,
      ...ownSignals,
    });
    await visit(await browser.newPage(), url);
    await browser.close();
  };
}

async function visit(page: Awaited<ReturnType<Browser["newPage"]>>, url: string): Promise<void> {
  const response = await page.goto(url);
  if (!response?.ok()) throw new Error(`the page was answered ${response?.status() ?? "nothing"}`);
}

interface Reading {
  readonly at: number;
  readonly client: number;
  readonly group: number | undefined;
  readonly pids: readonly number[];
}

async function read({ usageFile, pids }: Work): Promise<Reading> {
  const { user, system } = process.cpuUsage();
  return {
    at: systemClock.monotonic(),
    client: (user + system) / 1e6,
    group: usageFile === undefined ? undefined : await groupSeconds(usageFile),
    pids: await Promise.all(pids.map(processSeconds)),
  };
}

const between = (begin: Reading, end: Reading): Done => ({
  tookMs: end.at - begin.at,
  clientSeconds: end.client - begin.client,
  pidSeconds: end.pids.map((seconds, at) => seconds - (begin.pids[at] ?? 0)),
  ...(begin.group !== undefined && end.group !== undefined && { groupSeconds: end.group - begin.group }),
});

/**
 * The clock runs while all workers are at work: from the last cycle of the warming up to the last that
 * counts.
 */
async function run(work: Work): Promise<Done> {
  const { way, url } = work;
  let done = 0;
  let begin: Promise<Reading> | undefined;
  let end: Promise<Reading> | undefined;
  await Promise.all(
    times(work.workers).map(async () => {
      const cycle = way.kind === "lend" ? await lender(way, url) : launcher(way, url);
      while (end === undefined) {
        await cycle();
        done += 1;
        if (done === work.warmup) begin = read(work);
        if (done === work.warmup + work.cycles) end = read(work);
      }
    }),
  );
  if (begin === undefined || end === undefined) throw new Error("there is no cycle to count");
  return between(await begin, await end);
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const work = JSON.parse(await text(request)) as Work;
    response.end(JSON.stringify(await run(work)));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
}

const server = createServer((request, response) => void answer(request, response));
server.requestTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(`listening ${(server.address() as AddressInfo).port}`));
