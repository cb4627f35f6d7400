import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { within } from "../../../src/base/deadline.js";
import { systemClock } from "../../../src/base/clock.js";
import { openPort } from "../../../src/egress/port.js";
import { makeReservedEndpoints } from "../../../src/egress/reserved-endpoints.js";
import { spareConnections } from "../../../src/egress/limits.js";
import { canFindPeerUid, findPeerUid } from "../../../src/egress/peer/peer.js";
import { compiled } from "../../support/compiled.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { openEgress, rulesFor } from "../../support/egress/egress-bed.js";
import { ask, openTunnel } from "../../support/egress/egress-client.js";
import { type PeerWay, peerWayArguments } from "../../support/egress/peer-program.js";

const isRoot = process.getuid?.() === 0;

/**
 * A proxy of the proxy tier in another process, as another daemon on this machine has them: it answers
 * whatever it is asked.
 */
async function otherDaemon(): Promise<{ url: URL; child: ChildProcess }> {
  const module = pathToFileURL(join(compiled, "src/egress/port.js")).href;
  const code = `
    const { createServer } = await import("node:http"); const { openPort } = await import("${module}");
    const listener = openPort(); await listener.listen(createServer((_, reply) => reply.end("through another's proxy")));
    console.log(listener.proxyUrl);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  return { url: new URL(String(said).trim()), child };
}

test("a page of one daemon does not get out through a proxy of another, even where all of loopback is open to it", async () => {
  const { url } = await otherDaemon();
  // Control: the proxy is there for whoever connects straight.
  expect(await (await fetch(url)).text()).toBe("through another's proxy");
  const bed = await openEgress(rulesFor(["127.0.0.0/8", "localhost", url.host]));
  expect(await ask(bed.port, url.href)).toMatchObject({
    status: 403,
    text: expect.stringContaining("remuda"),
  });
  expect((await openTunnel(bed.port, url.host)).status).toBe(403);
  const control = createServer((_, reply) => reply.end("open"));
  await once(control.listen(0, "127.0.0.1"), "listening");
  expect(await ask(bed.port, `http://127.0.0.1:${(control.address() as AddressInfo).port}/`)).toMatchObject({
    status: 200,
  });
  control.close();
  await bed.egress.close();
});

test.each(["127.114.0.1", "127.114.255.254"])(
  "%s is closed at every port, and by every way to write it",
  async (address) => {
    const reserved = makeReservedEndpoints([]);
    expect([
      reserved.isOwn(address, 1),
      reserved.isOwn(address, 65_535),
      reserved.isOwn("127.113.0.1", 1),
      reserved.isOwn("127.11.4.1", 1),
    ]).toEqual([true, true, false, false]);
    const bed = await openEgress(rulesFor(["127.0.0.0/8", "0.0.0.0/0", "::/0"]), {
      parts: { resolve: async () => [address] },
    });
    const octets = address.split(".").map(Number);
    const hex = octets.map((octet) => octet.toString(16).padStart(2, "0")).join("");
    for (const host of [
      `[::ffff:${hex.slice(0, 4)}:${hex.slice(4)}]`,
      `0x${hex}`,
      String(Number.parseInt(hex, 16)),
      "any.test",
      `[::ffff:${address}]`,
    ]) {
      expect((await openTunnel(bed.port, `${host}:80`)).answer).toContain("remuda");
    }
    await bed.egress.close();
  },
);

test("whose a connection is can be found out while it lasts", async () => {
  expect(await canFindPeerUid()).toBe(true);
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  expect(await findPeerUid(socket)).toBe(process.getuid?.());
  client.destroy();
  server.closeAllConnections();
  server.close();
});

const asUser = (uid: number, code: string): [program: string, args: string[]] => [
  "setpriv",
  ["--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups", process.execPath, "-e", code],
];

/** What a process of another user is answered by the proxy. */
function askAs(uid: number, proxy: string, target: string): string {
  const { port, hostname } = new URL(proxy);
  const code = `const { request } = require("node:http");
    request({ host: "${hostname}", port: ${port}, path: "${target}" }, (reply) => reply.on("data", (data) => process.stdout.write(data))).on("error", (error) => console.log(error.code)).end();`;
  return spawnSync(...asUser(uid, code), { encoding: "utf8" }).stdout;
}

/**
 * A process of another user opens so many connections, says nothing and stays. Resolves once all of them have
 * been cut, or else before the proxy's time for a head is over.
 */
async function keepSilentAs(uid: number, proxy: string, connections: number): Promise<void> {
  const { port, hostname } = new URL(proxy);
  const code = `let open = ${connections};
    for (let i = 0; i < ${connections}; i += 1)
      require("node:net").connect(${port}, "${hostname}").on("error", () => {}).on("close", () => --open || console.log("cut")).resume();
    setInterval(() => {}, 60_000);`;
  const child = spawn(...asUser(uid, code), { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const limit = { what: "cutting what is silent", limitMs: 5_000 };
  await within(systemClock, limit, once(child.stdout, "data")).catch(() => {});
}

test("strangers leave two lines a second in the log, and what came too late to be anybody's leaves none", async () => {
  const clock = new DrivenClock();
  const answers = [...Array.from({ length: 20 }, () => false), undefined];
  const listener = openPort({ admission: { admits: async () => answers.shift() } });
  const bed = await openEgress(rulesFor([]), { listener, parts: { clock } });
  const { port, hostname } = new URL(bed.egress.proxyUrl);
  const counts = (): unknown[] =>
    bed.lines
      .filter(({ message }) => message === "stranger refused by an egress")
      .map(({ fields }) => (fields as { count: number }).count);
  while (answers.length > 0) await once(connect(Number(port), hostname).resume(), "close");
  expect(counts()).toEqual([1]);
  await clock.advance(1000);
  expect(counts()).toEqual([1, 19]);
  await bed.egress.close();
  expect(counts()).toEqual([1, 19]);
});

test.runIf(isRoot).each<PeerWay>(["kernel", "table"])(
  "a proxy admits the browser's user alone: no other user of the machine, and no other browser's that asks first or says nothing (by the %s)",
  async (way) => {
    const maxConnections = 100;
    // The helper waits for its child, which this process has to answer: so the egress stands in a third.
    const module = (path: string): string => pathToFileURL(join(compiled, path)).href;
    const code = `
    const { Egress } = await import("${module("src/egress/egress.js")}"); const { admitNamed, openPort } = await import("${module("src/egress/port.js")}");
    const { systemClock: clock } = await import("${module("src/base/clock.js")}"); const { patternsOf } = await import("${module("src/base/net/hosts.js")}");
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const egress = await Egress.open({ browser: "b", rules: { allowed: null, privates: patternsOf(["127.0.0.1"]), routes: [] }, listener: openPort({ admission: admitNamed() }) }, {
      settings: { connectMs: 60000, idleMs: 20000, maxConnections: ${maxConnections}, bytesPerSecond: null, headerBytes: 16384 },
      resolve: async () => [], reserved: { isOwn: () => false }, proxyHosts: [], clock, log, meter: { request() {}, carried() {} },
    });
    console.log(egress.proxyUrl);
    let withdraw = () => {};
    process.stdin.on("data", (text) => {
      withdraw();
      if (Number(text) > 0) withdraw = egress.admit(Number(text));
      console.log("told");
    });`;
    const options = [...peerWayArguments(way), "--input-type=module", "-e", code];
    const child = spawn(process.execPath, options, { stdio: ["pipe", "pipe", "inherit"] });
    const tell = async (uid: number): Promise<void> => {
      child.stdin.write(`${uid}\n`);
      await once(child.stdout, "data");
    };
    const site = spawn(
      process.execPath,
      [
        "-e",
        `require("node:http").createServer((_, reply) => reply.end("reached")).listen(0, "127.0.0.1", function () { console.log("http://127.0.0.1:" + this.address().port + "/") })`,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    onTestFinished(() => void (child.kill("SIGKILL"), site.kill("SIGKILL")));
    const [[said], [at]] = (await Promise.all([once(child.stdout, "data"), once(site.stdout, "data")])) as [
      [Buffer],
      [Buffer],
    ];
    const proxy = String(said).trim();
    const page = String(at).trim();
    // Before the browser has started, another one has found its proxy.
    expect(askAs(70_004, proxy, page)).toContain("ECONNRESET");
    await tell(70_003);
    expect(askAs(70_004, proxy, page)).toContain("ECONNRESET");
    expect(askAs(64_999, proxy, page)).toContain("ECONNRESET");
    expect(askAs(0, proxy, page)).toContain("ECONNRESET");
    expect(askAs(70_003, proxy, page)).toBe("reached");
    // It takes no place from the browser by saying nothing either.
    await keepSilentAs(70_004, proxy, maxConnections + spareConnections + 6);
    expect(askAs(70_003, proxy, page)).toBe("reached");
    // The browser has ended, and the next one that has its uid has another proxy.
    await tell(0);
    expect(askAs(70_003, proxy, page)).toContain("ECONNRESET");
    await tell(70_005);
    expect(askAs(70_003, proxy, page)).toContain("ECONNRESET");
    expect(askAs(70_005, proxy, page)).toBe("reached");
  },
);
