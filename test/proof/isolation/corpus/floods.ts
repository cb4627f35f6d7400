import { readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { systemClock } from "../../../../src/base/clock.js";
import { within } from "../../../../src/base/deadline.js";
import { connectRaw } from "../../../support/gateway/raw-cdp.js";
import { frame, openRawClient, type RawClient } from "../../../support/gateway/raw-frames.js";
import { Page } from "../../egress/corpus/page.js";
import type { Browser } from "../browser-source.js";
import { factOf, processesOf, withDescendants } from "../programs.js";
import { type ClientAttempt, NothingProved, type Work } from "./attempt.js";

const mebibyte = 2 ** 20;
const farId = 7_000_001;
const times = (count: number): readonly number[] => Array.from({ length: count }, (_, place) => place);
const flood = (
  name: string,
  run: ClientAttempt["run"],
  other: Partial<ClientAttempt> = {},
): ClientAttempt => ({ name: `flood: ${name}`, vector: "CDP", succeedsPlain: true, ...other, run });

/**
 * Sends a command with that in its params; gives the error's words, or nothing where the client was closed
 * for it.
 */
async function answerTo({ cdp }: Work, given: string): Promise<string | undefined> {
  cdp.socket.send(`{"id":${farId},"method":"Browser.getVersion","params":{"given":${given}}}`);
  const answer = cdp.message(({ id }) => id === farId).then(({ error }) => error?.message ?? "answered");
  return await Promise.race([answer, cdp.closed.then(() => undefined)]);
}

async function takesLong(work: Work): Promise<void> {
  if ((await answerTo(work, `"${"x".repeat(20 * mebibyte)}"`)) !== undefined)
    work.saw("a message of 20 MiB was taken");
}

async function takesMany(work: Work): Promise<void> {
  const answer = await answerTo(work, `[${"{},".repeat(300_000)}{}]`);
  if (answer !== undefined && !answer.includes("keys and elements"))
    work.saw("a message of 300,000 values was parsed");
}

/** A busy machine answers a command well before. */
const neighbourLimitMs = 10_000;

/** Whether another tenant is served while four clients send that, again and again. */
async function hurtsNeighbour({ browser, openKeeping, saw }: Work, message: string): Promise<void> {
  const neighbour = await openKeeping();
  const cdp = await connectRaw(neighbour.cdpUrl);
  const clients = await Promise.all(times(4).map(() => openRawClient(browser.cdpUrl)));
  try {
    const sent = frame(message);
    // The server answers each with an error or with a close frame, or just ends it.
    const judged = Promise.all(
      clients.map(({ socket, closed }) => Promise.race([once(socket, "data"), closed])),
    );
    for (const { socket } of clients) socket.write(sent);
    const limit = { what: "a neighbour's answers", limitMs: neighbourLimitMs };
    // Each is asked for after the last, while the messages are read and judged, and once more after that.
    const answers = async (): Promise<void> => {
      for (const _ of times(50)) await cdp.send("Browser.getVersion");
      await judged;
      if ((await cdp.send("Browser.getVersion")).result === undefined) throw new Error("it is gone");
    };
    await within(systemClock, limit, answers()).catch((error: Error) => saw(`a neighbour: ${error.message}`));
  } finally {
    for (const { socket } of clients) socket.destroy();
    cdp.socket.terminate();
    await neighbour.close();
  }
}

/** Far longer than a neighbour computes; then the threads end by themselves. */
const threadsMs = 60_000;
const computingMs = 4000;
/** Computing and what goes with it takes so long at most while others compute, too. */
const computingLimitMs = 6 * computingMs;

/** Processor time of all of a browser's processes so far, in ticks (proc(5): fields 14 and 15 of `stat`). */
async function ticksOf({ root }: Browser): Promise<number> {
  const stats = await Promise.all(
    (await withDescendants(await processesOf(root))).map((pid) => factOf(pid, "stat")),
  );
  // The name of a program, in brackets, may hold spaces.
  const fields = stats.map((stat) => stat.slice(stat.lastIndexOf(")") + 2).split(" "));
  return fields.reduce((sum, [...each]) => sum + Number(each[11] ?? 0) + Number(each[12] ?? 0), 0);
}

/** Whether one busy thread of a neighbour is left with the share of one among all those of this browser. */
async function takesProcessors({ browser, open, openKeeping, saw, admits }: Work): Promise<void> {
  const processors = availableParallelism();
  const neighbour = await openKeeping();
  const cdp = await connectRaw(neighbour.cdpUrl);
  try {
    const computing = await Page.open(cdp, "about:blank");
    await (await open()).evaluate(busyThreads(threadsPerProcessor * processors));
    const before = await Promise.all([ticksOf(neighbour), ticksOf(browser)]);
    const busy = `const end = performance.now() + ${computingMs}; while (performance.now() < end);`;
    const limit = { what: "a neighbour's page", limitMs: computingLimitMs };
    await within(systemClock, limit, computing.evaluate(busy)).catch(({ message }: Error) => saw(message));
    const after = await Promise.all([ticksOf(neighbour), ticksOf(browser)]);
    const [own = 0, others = 0] = after.map((ticks, at) => ticks - (before[at] ?? 0));
    // With equal shares a neighbour has a processor, and the threads have the others; else a quarter of that.
    if (own * 2 * processors < others) saw(`a neighbour's page gets ${own} ticks beside ${others}`);
    if (browser.isolation?.limits?.cpu === "none") admits(noShares);
  } finally {
    cdp.socket.terminate();
    await neighbour.close();
  }
}
const threadsPerProcessor = 4;
const noShares =
  "processors are shared out among browsers by cgroups alone; docs/isolation.md, Limits, says where there are none";
/** Starts so many workers that compute, and waits until all do. */
const busyThreads = (count: number): string => `
  const code = "postMessage(0); const end = performance.now() + ${threadsMs}; while (performance.now() < end);";
  const url = URL.createObjectURL(new Blob([code]));
  await Promise.all(Array.from({ length: ${count} }, () => new Promise((resolve) => (new Worker(url).onmessage = resolve))));`;

const commandWith = (given: string): string =>
  `{"id":1,"method":"Browser.getVersion","params":{"given":${given}}}`;
const farBytes = 99 * mebibyte;
const manyObjects = (): string => commandWith(`[${"{},".repeat(farBytes / 3)}{}]`);
const muchNesting = (): string => commandWith("[".repeat(farBytes / 2) + "]".repeat(farBytes / 2));
/** Short enough to be taken, so that it is the depth that is judged. */
const someNesting = (): string => commandWith("[".repeat(4 * mebibyte) + "]".repeat(4 * mebibyte));
const noNeighbour = { because: "without a daemon nobody shares a process with another tenant" };

async function opensMany({ browser, saw }: Work): Promise<void> {
  const opened = await Promise.allSettled(times(40).map(() => connectRaw(browser.cdpUrl)));
  const clients = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  if (clients.length === opened.length) saw(`${opened.length} clients at once`);
  for (const { socket } of clients) socket.terminate();
}

/** A client, and when the server has answered its ping. */
async function openPinging(url: string): Promise<RawClient & { readonly answered: Promise<void> }> {
  const client = await openRawClient(url);
  const answered = new Promise<void>((resolve) =>
    client.socket.on("data", (chunk: Buffer) => {
      if (chunk.includes("held")) resolve();
    }),
  );
  return { ...client, answered };
}

const ping = frame("held", { opcode: 9 });
/** Together more than a browser's clients may hold, each less than a message may have. */
async function finishesNothing({ browser, saw }: Work): Promise<void> {
  const clients = await Promise.all(times(8).map(() => openPinging(browser.cdpUrl)));
  const part = frame(Buffer.alloc(12 * mebibyte, "x"), { isLast: false });
  for (const { socket } of clients) socket.write(Buffer.concat([part, ping]));
  const cut = Promise.race(clients.map(({ closed }) => closed.then(() => true)));
  // A server that answers has read what came before: RFC 6455, 5.4, has control frames between parts of a
  // message.
  const held = Promise.all(clients.map(({ answered }) => answered)).then(() => false);
  if (!(await Promise.race([cut, held]))) saw("96 MiB of unfinished messages are held");
  for (const { socket } of clients) socket.destroy();
}

async function attachesMany({ cdp, saw }: Work): Promise<void> {
  const wanted = 1200;
  const { result } = await cdp.send("Target.createTarget", { url: "about:blank" });
  let got = 0;
  const all = new Promise<void>((resolve) => {
    let answers = 0;
    cdp.socket.on("message", (data: Buffer) => {
      const { id = 0, result: given } = JSON.parse(data.toString()) as { id?: number; result?: object };
      if (id < farId) return;
      answers += 1;
      if (given !== undefined) got += 1;
      if (answers === wanted) resolve();
    });
  });
  for (const each of times(wanted))
    cdp.socket.send(
      JSON.stringify({
        id: farId + each,
        method: "Target.attachToTarget",
        params: { targetId: result?.["targetId"], flatten: true },
      }),
    );
  await all;
  if (got === wanted) saw(`${wanted} CDP sessions of one client`);
}

async function asksForDenied({ machine, open, saw }: Work): Promise<void> {
  const before = machine.log().split("\n").length;
  const page = await open();
  await page.evaluate(
    `await soon(Promise.all(Array.from({ length: 1000 }, (_, at) => fetch("http://10.0." + (at >> 8) + "." + (at & 255) + "/", { mode: "no-cors" }).catch(() => {}))), 8000);`,
  );
  const lines = machine.log().split("\n").length - before;
  if (lines > 200) saw(`${lines} lines in the log for 1000 denied requests`);
}

const statusOf = (port: number, host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    request({ port, host: "127.0.0.1", path: "/metrics", headers: { host } }, (reply) => {
      reply.resume();
      resolve(reply.statusCode ?? 0);
    })
      .once("error", reject)
      .end();
  });

/** The headers that keep a page of the daemon's from being framed, sniffed or given scripts of others. */
const wantedHeaders: readonly (readonly [string, RegExp])[] = [
  ["content-security-policy", /frame-ancestors 'none'/],
  ["content-security-policy", /default-src '(?:none|self)'/],
  ["x-content-type-options", /^nosniff$/],
];

async function lacksHeaders({ machine: { port }, saw }: Work): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}/docs`);
  const text = await reply.text();
  if (reply.status !== 200) throw new NothingProved(`/docs answers ${reply.status}`);
  for (const [name, wanted] of wantedHeaders) {
    const found = reply.headers.get(name) ?? "";
    if (!wanted.test(found)) saw(`/docs has ${name}: ${JSON.stringify(found)}`);
  }
  if (/<title>[^<]*swagger/i.test(text)) saw("/docs has the library's name");
}

async function asksUnderAnotherName({ machine: { port }, saw }: Work): Promise<void> {
  if ((await statusOf(port, `127.0.0.1:${port}`)) !== 200)
    throw new NothingProved("its own name is refused too");
  for (const host of ["attacker.example", `attacker.example:${port}`, "127.0.0.1.attacker.example"]) {
    if ((await statusOf(port, host)) === 200) saw(`/metrics as ${JSON.stringify(host)}`);
  }
}

/** Every user of a machine may read them. */
async function commandLines(): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")));
}

async function readsCommandLines({ browser, saw }: Work): Promise<void> {
  const session = /\/browsers\/([^/?]+)/.exec(browser.cdpUrl)?.[1] ?? basename(browser.root);
  if ((await commandLines()).some((line) => line.includes(session)))
    saw("what names a session in a command line");
}

const quick = { isQuick: true } as const;

/** What one tenant could cost all the others, or tell them. */
export const floods: readonly ClientAttempt[] = [
  flood("a message of 20 MiB", takesLong, quick),
  flood("a message of 300,000 values", takesMany, quick),
  flood("99 MiB of objects, and a neighbour", (work) => hurtsNeighbour(work, manyObjects()), {
    needsHeadless: true,
    succeedsPlain: noNeighbour,
  }),
  flood("99 MiB of nesting, and a neighbour", (work) => hurtsNeighbour(work, muchNesting()), {
    needsHeadless: true,
    succeedsPlain: noNeighbour,
  }),
  flood("8 MiB of nesting, and a neighbour", (work) => hurtsNeighbour(work, someNesting()), {
    needsHeadless: true,
    succeedsPlain: noNeighbour,
  }),
  flood("four busy threads for each processor, and a neighbour", takesProcessors, {
    vector: "page",
    succeedsPlain: {
      because: "a kernel that groups programs by sessions shares processors out among them, too",
    },
  }),
  flood("40 clients of one browser", opensMany, quick),
  flood("96 MiB of messages that are not finished", finishesNothing, quick),
  flood("1200 CDP sessions of one client", attachesMany),
  flood("1000 denied requests and the log", asksForDenied, {
    ...quick,
    vector: "page",
    succeedsPlain: { because: "without a way out of its own nothing is denied, and nobody logs it" },
  }),
  flood("/metrics under another name", asksUnderAnotherName, {
    ...quick,
    vector: "outside",
    succeedsPlain: { because: "the daemon is the same without walls; its own name is the control" },
  }),
  flood("/docs framed, sniffed or with scripts of others", lacksHeaders, {
    vector: "outside",
    succeedsPlain: { because: "the daemon is the same without walls; that /docs is there is the control" },
  }),
  flood("sessions in command lines", readsCommandLines, { vector: "outside", ...quick }),
];
