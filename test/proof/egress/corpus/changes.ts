import { until } from "../../../support/browser/chromium-until.js";
import { openStreams, type Streams } from "../streams.js";
import type { Attempt, Work } from "./attempt.js";

/** What a page does with a host that is allowed, and then is not. */
interface Running {
  readonly what: string;
  /** Begins it in a page; `base` is the host's address. */
  readonly begin: string;
  /** What the page does once the rules are others: says "late" to the host, if it can. */
  readonly goOn: string;
}

const untilWithdrawn = "late";
const running: readonly Running[] = [
  {
    what: "a WebSocket",
    begin: `globalThis.held = new WebSocket(base.replace("http", "ws") + "/socket"); await soon(new Promise((resolve) => (held.onopen = resolve)));`,
    goOn: `held.send("${untilWithdrawn}");`,
  },
  {
    what: "a WebSocket of a worker",
    begin: `const body = "onmessage = ({ data }) => held.send(data); const held = new WebSocket('" + base.replace("http", "ws") + "/socket'); held.onopen = () => postMessage(1)"; globalThis.held = new Worker(URL.createObjectURL(new Blob([body]))); await soon(new Promise((resolve) => (held.onmessage = resolve)));`,
    goOn: `held.postMessage("${untilWithdrawn}");`,
  },
  {
    what: "an answer that is being read",
    begin: `globalThis.held = (await fetch(base + "/stream")).body.getReader(); await held.read();`,
    goOn: `const end = Date.now() + 500; while (Date.now() < end && !(await soon(held.read(), 300).catch(() => ({ done: true })))?.done); fetch(base + "/${untilWithdrawn}").catch(() => {});`,
  },
  {
    what: "events of a server",
    begin: `globalThis.held = new EventSource(base + "/stream?type=text/event-stream"); await soon(new Promise((resolve) => (held.onmessage = resolve)));`,
    goOn: `fetch(base + "/${untilWithdrawn}").catch(() => {});`,
  },
  {
    what: "a download",
    begin: `Object.assign(document.createElement("a"), { href: base + "/stream?type=application/octet-stream" }).click(); await soon(new Promise(() => {}), 500);`,
    goOn: `Object.assign(document.createElement("a"), { href: base + "/${untilWithdrawn}?type=application/octet-stream", download: "held" }).click();`,
  },
  {
    what: "a connection that is kept for the next request",
    begin: `await (await fetch(base + "/first", { cache: "no-store" })).text();`,
    goOn: `fetch(base + "/${untilWithdrawn}", { cache: "no-store" }).catch(() => {});`,
  },
  {
    what: "a page of the host",
    begin: `globalThis.held = open(base + "/page"); await soon(new Promise(() => {}), 500);`,
    goOn: `held.location = base + "/${untilWithdrawn}";`,
  },
];

async function change(work: Work, streams: Streams, { begin, goOn }: Running): Promise<void> {
  const base = `http://${streams.host}:${streams.port}`;
  const page = await work.open();
  await work.permit([`${streams.host}:${streams.port}`]);
  await page.evaluate(`const base = ${JSON.stringify(base)}; ${begin}`);
  await until("the host is reached", () => streams.heard.length > 0);
  await work.permit([]);
  // Also without a guard: what it says then shows that the attempt works.
  await page.evaluate(`const base = ${JSON.stringify(base)}; ${goOn}`);
  if (await work.shows(() => streams.heard.some((text) => text.includes(untilWithdrawn))))
    work.saw("it was reached after the change");
  if (streams.openCount() > 0) work.saw(`${streams.openCount()} connections go on after the change`);
}

/** A host is taken from the rules while something of it is under way. */
export const changes: readonly Attempt[] = running.map((each): Attempt => ({
  name: `rules that change during ${each.what}`,
  needs: ["names"],
  isAlone: "changes",
  reachesPlain: true,
  async run(work) {
    const streams = await openStreams(work.world.denied);
    try {
      await change(work, streams, each);
    } finally {
      await streams.close();
    }
  },
}));
