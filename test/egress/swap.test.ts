import { afterEach, expect, test } from "vitest";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Rules } from "../../src/egress/rules.js";
import { type EgressBed, openEgress, resolveBy, rulesFor } from "../support/egress/egress-bed.js";
import { ask, closeOf, openSocket, openTunnel, readText } from "../support/egress/egress-client.js";
import { lossOf, openRawOrigin } from "../support/egress/egress-origin.js";
import { until } from "../support/browser/chromium-until.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Answers every piece with a whole HTTP answer, and remembers whether it was ever sent what says `after`. */
async function openListener() {
  const heard = { pieces: 0, after: 0 };
  const origin = await openRawOrigin((socket) => {
    socket.on("data", (data) => {
      heard.pieces += 1;
      if (data.includes("after")) heard.after += 1;
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    socket.once("end", () => socket.end());
  });
  closing.push(() => origin.close());
  return { ...origin, heard };
}

const denied = "denied.test";
const allowed = "allowed.test";
const names = resolveBy({ [denied]: ["127.0.0.1"], [allowed]: ["127.0.0.1"] });
const openAll = rulesFor(["127.0.0.0/8"]);
const onlyAllowed = rulesFor(["127.0.0.0/8"], [allowed]);

async function openBed(rules = openAll): Promise<EgressBed> {
  const bed = await openEgress(rules, { parts: { resolve: names } });
  closing.push(() => bed.egress.close());
  return bed;
}

/** What the traffic of a test says now: everybody's bytes carry it. */
interface Traffic {
  phase: "before" | "after";
  isOver: boolean;
  readonly sockets: Set<Socket>;
}

/** Writes into a tunnel, piece after piece, until it breaks or all is over. */
async function pump(bed: EgressBed, target: string, traffic: Traffic): Promise<void> {
  const { status, socket } = await openTunnel(bed.port, target);
  if (status !== 200) return;
  traffic.sockets.add(socket);
  socket.once("close", () => traffic.sockets.delete(socket));
  const write = (): void => void (traffic.isOver || socket.destroyed || socket.write(traffic.phase));
  socket.on("data", write).once("end", () => socket.destroy());
  write();
  await closeOf(socket);
}

/** Asks over and over on connections of its own. */
async function askAgain(bed: EgressBed, host: string, traffic: Traffic): Promise<void> {
  while (!traffic.isOver) await ask(bed.port, `http://${host}/${traffic.phase}`).catch(() => {});
}

/** Opens tunnels over and over. */
async function openAgain(bed: EgressBed, target: string, traffic: Traffic): Promise<void> {
  while (!traffic.isOver) {
    // Refused at the end of the test.
    const tunnel = await openTunnel(bed.port, target).catch(() => undefined);
    if (tunnel?.status === 200) {
      tunnel.socket.write(traffic.phase);
      await readText(tunnel.socket, () => true);
    }
    tunnel?.socket.destroy();
  }
}

test("after a swap under load no byte reaches a host that is no longer allowed, and what is allowed goes on", async () => {
  const [bad, good] = [await openListener(), await openListener()];
  const bed = await openBed();
  const traffic: Traffic = { phase: "before", isOver: false, sockets: new Set() };
  closing.push(() => (traffic.isOver = true));
  const both = (host: string, port: number) => [
    ...Array.from({ length: 100 }, () => pump(bed, `${host}:${port}`, traffic)),
    ...Array.from({ length: 20 }, () => askAgain(bed, `${host}:${port}`, traffic)),
    ...Array.from({ length: 20 }, () => openAgain(bed, `${host}:${port}`, traffic)),
  ];
  const [denieds, alloweds] = [both(denied, bad.port), both(allowed, good.port)];
  await until(
    "all of it runs",
    () => traffic.sockets.size >= 200 && bad.heard.pieces > 1000 && good.heard.pieces > 1000,
  );

  await bed.egress.apply(onlyAllowed);
  traffic.phase = "after";
  const sockets = bad.accepted.length;

  await until("what is allowed goes on", () => good.heard.after > 1000);
  await until(
    "what is denied is cut",
    () => traffic.sockets.size <= 120 && bad.accepted.every(({ destroyed }) => destroyed),
  );
  expect(bad.heard.after).toBe(0);
  // A connection whose handshake was over before the swap may still have been in the origin's queue; a new
  // one is not made.
  expect(bad.accepted.length - sockets).toBeLessThan(40);
  expect(bed.egress.usage().denied.allowed_hosts).toBeGreaterThan(0);
  traffic.isOver = true;
  await bed.egress.close();
  await Promise.all([...denieds, ...alloweds]);
});

test("what was being resolved under old rules is judged by the new ones", async () => {
  const origin = await openListener();
  let answer: ((addresses: readonly string[]) => void) | undefined;
  const bed = await openEgress(openAll, {
    parts: { resolve: () => new Promise((resolve) => (answer = resolve)) },
  });
  closing.push(() => bed.egress.close());
  const tunnel = openTunnel(bed.port, `${denied}:${origin.port}`);
  await until("the name is asked for", () => answer);
  await bed.egress.apply(onlyAllowed);
  answer?.(["127.0.0.1"]);
  expect(await tunnel).toMatchObject({ status: 403 });
  expect(origin.accepted).toHaveLength(0);
});

test("a request that waits for its answer is cut, and told of the new rules", async () => {
  const origin = await openRawOrigin((socket) => void socket.resume());
  closing.push(() => origin.close());
  const bed = await openBed();
  const answer = ask(bed.port, `http://${denied}:${origin.port}/`);
  const [socket] = (await once(origin.server, "connection")) as [Socket];
  await once(socket, "data");
  await bed.egress.apply(onlyAllowed);
  expect(await answer).toMatchObject({ status: 403, headers: { "x-remuda-egress": "denied" } });
  await lossOf(socket);
});

/** Changes the rules so many turns after the name of a request is resolved that finds a kept connection. */
async function askBesideChange(turns: number, url: string, rules: Rules): Promise<number> {
  let held: Promise<void> | undefined;
  let questions = 0;
  const resolve = async () => {
    questions += 1;
    await held;
    return ["127.0.0.1"];
  };
  const bed = await openEgress(openAll, { parts: { resolve } });
  closing.push(() => bed.egress.close());
  expect(await ask(bed.port, url)).toMatchObject({ status: 200 });
  let release = (): void => {};
  held = new Promise((resolved) => (release = resolved));
  const answer = ask(bed.port, url);
  await until("the name is asked for", () => questions === 2);
  held = undefined;
  release();
  for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
  await bed.egress.apply(rules);
  return (await answer).status;
}

test.each([
  ["denies", onlyAllowed, 403],
  ["allows", openAll, 200],
] as const)("whenever a change that %s it meets a request, that is answered", async (_, rules, status) => {
  const origin = await openListener();
  for (let turns = 0; turns < 40; turns += 1)
    expect([turns, await askBesideChange(turns, `http://${denied}:${origin.port}/`, rules)]).toEqual([
      turns,
      status,
    ]);
});

test("an answer that is coming is broken off", async () => {
  const origin = await openRawOrigin(
    (socket) => void socket.resume().write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"),
  );
  closing.push(() => origin.close());
  const bed = await openBed();
  const socket = await openSocket(bed.port);
  socket.write(`GET http://${denied}:${origin.port}/ HTTP/1.1\r\n\r\n`);
  await readText(socket, (text) => text.includes("part"));
  socket.resume();
  await bed.egress.apply(onlyAllowed);
  await closeOf(socket);
});

test("shut lets nothing pass, also what was allowed, until rules are applied", async () => {
  const origin = await openListener();
  const bed = await openBed();
  const { socket } = await openTunnel(bed.port, `${allowed}:${origin.port}`);
  socket.resume();
  bed.egress.shut();
  await closeOf(socket);
  expect(await ask(bed.port, `http://${allowed}:${origin.port}/`)).toMatchObject({ status: 403 });
  await expect.poll(() => bed.egress.usage()).toMatchObject({ connections: 0, denied: { closed: 1 } });
  await bed.egress.apply(openAll);
  expect(await ask(bed.port, `http://${allowed}:${origin.port}/`)).toMatchObject({ status: 200 });
});

test("while the rules may be out of date nothing begins, also what was on its way", async () => {
  const origin = await openListener();
  const url = `http://${allowed}:${origin.port}/`;
  let isStale = false;
  const bed = await openEgress(openAll, {
    parts: {
      resolve: async () => {
        isStale = true;
        return ["127.0.0.1"];
      },
    },
  });
  closing.push(() => bed.egress.close());
  bed.egress.closeWhile(() => isStale);
  expect(await ask(bed.port, url)).toMatchObject({ status: 403, text: expect.stringContaining("closed") });
  expect(await openTunnel(bed.port, `${allowed}:${origin.port}`)).toMatchObject({ status: 403 });
  expect(origin.heard.pieces).toBe(0);
  isStale = false;
  bed.egress.closeWhile(() => false);
  expect(await ask(bed.port, url)).toMatchObject({ status: 200 });
});

test("rules that allow the same cut nothing; a change of a name's route does", async () => {
  const origin = await openListener();
  const bed = await openBed();
  const { socket } = await openTunnel(bed.port, `${allowed}:${origin.port}`);
  await bed.egress.apply(onlyAllowed);
  socket.write("still here");
  expect(await readText(socket, (text) => text.endsWith("ok"))).toContain("200");
  await bed.egress.apply(rulesFor(["10.0.0.0/8"], [allowed]));
  await closeOf(socket.resume());
});

test("close ends everything that is open and the listener, also with a reader that does not read", async () => {
  const origin = await openRawOrigin((socket) => void socket.resume().write(Buffer.alloc(8 * 2 ** 20)));
  closing.push(() => origin.close());
  const bed = await openBed();
  const idle = await openSocket(bed.port);
  const tunnels = await Promise.all(
    Array.from({ length: 20 }, () => openTunnel(bed.port, `${allowed}:${origin.port}`)),
  );
  await bed.egress.close();
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
  await Promise.all(
    [idle, ...tunnels.map(({ socket }) => socket)].map((socket) => closeOf(socket.resume().end())),
  );
  await until("the origin has lost all", () => origin.accepted.every(({ destroyed }) => destroyed));
  await expect(openSocket(bed.port)).rejects.toThrow("ECONNREFUSED");
});
