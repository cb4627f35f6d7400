import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findTool } from "../../src/browser/executable.js";
import { type Libc, loadLibc } from "../../src/egress/libc.js";
import { findNamespaces, makeNamespace, type NamespaceListener, type NamespaceTools } from "../../src/egress/namespace.js";
import { nothing, takeCensus } from "../support/chromium-census.js";
import { type DaemonScript, prepareDaemon } from "../support/chromium-daemon.js";
import { newScratchDirectory, openTestHost, silentLog } from "../support/chromium-host.js";
import { until } from "../support/chromium-until.js";
import { sweepLeftovers } from "../../src/browser/sweep.js";

let tools: Required<NamespaceTools>;
let libc: Libc;
let script: DaemonScript;
const servers: Server[] = [];
beforeAll(async () => {
  const [nsenter = "", ip = ""] = await Promise.all([findTool("nsenter"), findTool("ip")]);
  tools = { nsenter, ip };
  [libc, script] = await Promise.all([loadLibc(), prepareDaemon("daemon-of-namespaces.mjs")]);
});
afterAll(async () => {
  for (const server of servers) server.close();
  await script.remove();
});

async function openOne(): Promise<NamespaceListener> {
  const found = await findNamespaces({ tools, log: silentLog });
  if (found.kind === "unavailable") throw new Error(found.why);
  return found.openNamespace();
}

/** A server that greets whoever connects. */
function greeter(greeting: string): Server {
  const server = createServer((socket) => socket.end(greeting));
  servers.push(server);
  return server;
}

const hear = "const s=require('net').connect(+process.argv[2],process.argv[1]);s.setTimeout(+process.argv[3],()=>{console.log('silence');process.exit()});s.on('data',d=>console.log(''+d));s.on('error',e=>console.log(e.code))";

/** What a process in the namespace is told at an address, or the error it gets. */
const heardWithin = (namespace: string, host: string, port: number): Promise<string> =>
  new Promise((resolve) => {
    execFile(tools.nsenter, [`--net=${namespace}`, process.execPath, "-e", hear, host, `${port}`, "500"], (_, said, failure) => resolve(said.trim() || failure));
  });

function heardHere(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("data", (data) => resolve(data.toString())).on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
  });
}

const own = (): string => readlinkSync("/proc/thread-self/ns/net");
const descriptors = (): number => readdirSync("/proc/self/fd").length;

/** Every process that is in the namespace or holds it open. */
function holdersOf(name: string): string[] {
  const linksTo = (path: string): boolean => {
    try {
      return readlinkSync(path) === name;
    } catch {
      return false;
    }
  };
  const held = (pid: string): boolean => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => linksTo(`/proc/${pid}/fd/${fd}`));
    } catch {
      return false;
    }
  };
  return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && (linksTo(`/proc/${pid}/ns/net`) || held(pid)));
}

describe("a namespace", () => {
  test("has its own server behind the address that all of them share, and none outside", async () => {
    const [one, other] = await Promise.all([openOne(), openOne()]);
    await Promise.all([one.listen(greeter("one")), other.listen(greeter("other"))]);
    expect([one.proxyUrl, other.proxyUrl]).toEqual(["http://127.0.0.1:3128", "http://127.0.0.1:3128"]);
    expect(await heardWithin(one.namespace, "127.0.0.1", 3128)).toBe("one");
    expect(await heardWithin(other.namespace, "127.0.0.1", 3128)).toBe("other");
    expect(await heardHere(3128)).toBe("ECONNREFUSED");
    one.close();
    other.close();
  });

  test("reaches nothing of the host and nothing beyond, and yet has a route", async () => {
    const server = greeter("host");
    server.listen(0, "0.0.0.0");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    expect(await heardHere(port)).toBe("host");
    const { namespace, close } = await openOne();
    const hosts = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "10.255.255.1", "10.255.255.2", "8.8.8.8", "169.254.169.254", ...addresses()];
    const heard = await Promise.all(hosts.map((host) => heardWithin(namespace, host, port)));
    for (const each of heard) expect(each).toMatch(/^(?:ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL|silence)$/);
    close();
  });

  test("does not change any more once it is open, for Chromium would break off what it loads", async () => {
    const { namespace, close } = await openOne();
    const { stdout } = await promisify(execFile)(tools.nsenter, [`--net=${namespace}`, tools.ip, "-o", "address"]);
    const found = stdout.trim().split("\n").map((line) => line.split(/\s+/).slice(1, 4).join(" "));
    // No address that the kernel makes of the device's own, and still has to try out.
    expect(found.toSorted()).toEqual(["eth0 inet 10.255.255.2/24", "lo inet 127.0.0.1/8", "lo inet6 ::1/128"]);
    close();
  });

  test("is let go of: no descriptor stays, also when it never listened", async () => {
    const found = await findNamespaces({ tools, log: silentLog });
    if (found.kind === "unavailable") throw new Error(found.why);
    const before = descriptors();
    for (let count = 0; count < 5; count += 1) {
      const listener = await found.openNamespace();
      const name = readlinkSync(listener.namespace);
      const server = createServer();
      if (count % 2 === 0) await listener.listen(server);
      expect(holdersOf(name)).toEqual([`${process.pid}`]);
      listener.close();
      listener.close();
      if (server.listening) await new Promise((resolve) => void server.close(resolve));
      expect(holdersOf(name)).toEqual([]);
    }
    expect(descriptors()).toBe(before);
  });
});

/** Of this machine, but for loopback ones. */
const addresses = (): string[] =>
  [...readFileSync("/proc/net/fib_trie", "utf8").matchAll(/([\d.]+)\n\s+\/32 host LOCAL/g)].map(([, address = ""]) => address)
    .filter((address) => !address.startsWith("127."));

describe("the daemon's thread", () => {
  test("is at home again, also when no socket could be made there", () => {
    const home = own();
    const before = descriptors();
    expect(() => makeNamespace({ ...libc, listen: () => { throw new Error("no socket"); } })).toThrow("no socket");
    expect(own()).toBe(home);
    expect(descriptors()).toBe(before);
  });

  test("has not left when it may not leave", () => {
    const home = own();
    const before = descriptors();
    expect(() => makeNamespace({ ...libc, leaveNetwork: () => { throw new Error("refused"); } })).toThrow("refused");
    expect(own()).toBe(home);
    expect(descriptors()).toBe(before);
  });

  test("ends its process when there is no way home", async () => {
    const { child, said } = await script.start("strand", "ready");
    expect(await once(child, "exit")).toEqual([null, "SIGABRT"]);
    expect(said).toEqual(["ready"]);
  });
});

test("a daemon killed while a browser is in its namespace leaves neither", async () => {
  const scratchDirectory = newScratchDirectory();
  const { child, said } = await script.start(scratchDirectory, "ready");
  const [namespace = "", browsers] = said;
  expect(browsers).toBe(namespace);
  expect(namespace).not.toBe(own());
  expect(holdersOf(namespace).length).toBeGreaterThan(2);
  child.kill("SIGKILL");
  await once(child, "exit");
  await until("nobody in the namespace", () => holdersOf(namespace).length === 0);
  const host = await openTestHost({ scratchDirectory });
  await sweepLeftovers(host);
  expect(await takeCensus(scratchDirectory, new Set())).toEqual(nothing);
  await host.close();
});

describe("where there can be none, the reason is told", () => {
  test.each<[string, () => NamespaceTools]>([
    ["nsenter (util-linux) is not installed", () => ({ ip: tools.ip })],
    ["ip (iproute2) is not installed", () => ({ nsenter: tools.nsenter })],
    ["nsenter: Command failed", () => ({ ...tools, ip: "/bin/false" })],
  ])("%s", async (why, given) => {
    expect(await findNamespaces({ tools: given(), log: silentLog })).toEqual({ kind: "unavailable", why: expect.stringContaining(why) as string });
  });

  test("to a daemon that may not make them", async () => {
    const { said } = await script.start("examine", "ready", 64_322);
    expect(JSON.parse(said[0] ?? "")).toEqual({ kind: "unavailable", why: expect.stringContaining("unshare") as string });
  });
});
