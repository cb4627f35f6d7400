import { execFile } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { findTool } from "../../../src/browser/executable.js";
import {
  findNamespaces,
  type NamespaceListener,
  type NamespaceParts,
  type Namespaces,
  type NamespaceTools,
} from "../../../src/egress/namespace/namespace.js";
import { nothing, takeCensus } from "../../support/browser/chromium-census.js";
import { type DaemonScript, prepareDaemon } from "../../support/browser/chromium-daemon.js";
import { newScratchDirectory, openTestHost, silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { sweepLeftovers } from "../../../src/browser/sweep.js";

let tools: Required<NamespaceTools>;
let ip = "";
let script: DaemonScript;
const servers: Server[] = [];
/** Leads an ordinary user into the one user namespace that may be made there. */
const forbidding = [
  "unshare",
  "--user",
  "--map-root-user",
  "sh",
  "-c",
  'echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=64322 --map-group=64322 "$@"',
  "sh",
];
beforeAll(async () => {
  const [nsenter = "", unshare = ""] = await Promise.all([findTool("nsenter"), findTool("unshare")]);
  tools = { nsenter, unshare };
  ip = (await findTool("ip")) ?? "";
  script = await prepareDaemon("../egress/daemon-of-namespaces.mjs");
});
afterAll(async () => {
  for (const server of servers) server.close();
  await script.remove();
});

const parts = (given: Partial<NamespaceParts> = {}): NamespaceParts => ({
  tools,
  clock: systemClock,
  log: silentLog,
  stock: 0,
  ...given,
});

async function findOnes(
  given: Partial<NamespaceParts> = {},
): Promise<Extract<Namespaces, { kind: "available" }>> {
  const found = await findNamespaces(parts(given));
  if (found.kind === "unavailable") throw new Error(found.why);
  return found;
}

async function openOne(): Promise<NamespaceListener> {
  const found = await findOnes();
  try {
    return await found.openNamespace();
  } finally {
    await found.close();
  }
}

/** A server that greets whoever connects. */
function greeter(greeting: string): Server {
  const server = createServer((socket) => socket.end(greeting));
  servers.push(server);
  return server;
}

const hear =
  "const s=require('net').connect(+process.argv[2],process.argv[1]);s.setTimeout(+process.argv[3],()=>{console.log('silence');process.exit()});s.on('data',d=>console.log(''+d));s.on('error',e=>console.log(e.code))";

/** What a process in the namespace is told at an address, or the error it gets. */
const heardWithin = (namespace: string, host: string, port: number): Promise<string> =>
  new Promise((resolve) => {
    execFile(
      tools.nsenter,
      [`--net=${namespace}`, process.execPath, "-e", hear, host, `${port}`, "500"],
      (_, said, failure) => resolve(said.trim() || failure),
    );
  });

function heardHere(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket
      .on("data", (data) => resolve(data.toString()))
      .on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
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
  return readdirSync("/proc").filter(
    (pid) => /^\d+$/.test(pid) && (linksTo(`/proc/${pid}/ns/net`) || held(pid)),
  );
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
    const hosts = [
      "127.0.0.1",
      "127.0.0.2",
      "0.0.0.0",
      "::1",
      "10.255.255.1",
      "10.255.255.2",
      "8.8.8.8",
      "169.254.169.254",
      ...addresses(),
    ];
    const heard = await Promise.all(hosts.map((host) => heardWithin(namespace, host, port)));
    for (const each of heard)
      expect(each).toMatch(/^(?:ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL|silence)$/);
    close();
  });

  test("does not change any more once it is open, for Chromium would break off what it loads", async () => {
    const { namespace, close } = await openOne();
    const { stdout } = await promisify(execFile)(tools.nsenter, [`--net=${namespace}`, ip, "-o", "address"]);
    const found = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/).slice(1, 4).join(" "));
    // No address that the kernel makes of the device's own, and still has to try out.
    expect(found.toSorted()).toEqual([
      "eth0 inet 10.255.255.2/24",
      "lo inet 127.0.0.1/8",
      "lo inet6 ::1/128",
    ]);
    close();
  });

  test("is let go of: no descriptor stays, also when it never listened", async () => {
    const found = await findOnes();
    // What makes them is there already, and stays in the last one that it made.
    (await found.openNamespace()).close();
    const before = descriptors();
    let last = "";
    for (let count = 0; count < 200; count += 1) {
      const listener = await found.openNamespace();
      const name = readlinkSync(listener.namespace);
      const server = createServer();
      if (count % 2 === 0) await listener.listen(server);
      if (count % 50 === 0) expect(holdersOf(name)).toContain(`${process.pid}`);
      listener.close();
      listener.close();
      if (server.listening) await new Promise((resolve) => void server.close(resolve));
      if (count % 50 === 0) expect(holdersOf(name)).not.toContain(`${process.pid}`);
      last = name;
    }
    expect(descriptors()).toBe(before);
    await found.close();
    expect(holdersOf(last)).toEqual([]);
  });
});

/** Of this machine, but for loopback ones. */
const addresses = (): string[] =>
  [...readFileSync("/proc/net/fib_trie", "utf8").matchAll(/([\d.]+)\n\s+\/32 host LOCAL/g)]
    .map(([, address = ""]) => address)
    .filter((address) => !address.startsWith("127."));

/** The children of this process that make namespaces. */
const helpers = (): string[] =>
  readFileSync(`/proc/self/task/${process.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter((pid) => pid !== "" && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("namespace-helper"));

describe("namespaces made ahead", () => {
  test("are there at once, as many as the stock, and more are made behind them", async () => {
    const found = await findOnes({ stock: 2 });
    const first = await found.openNamespace();
    const before = readlinkSync(first.namespace);
    const more = await Promise.all([found.openNamespace(), found.openNamespace(), found.openNamespace()]);
    expect(new Set([before, ...more.map(({ namespace }) => readlinkSync(namespace))]).size).toBe(4);
    for (const each of [first, ...more]) each.close();
    await found.close();
    expect(helpers()).toEqual([]);
  });

  test("are let go of when it closes, and none is made any more", async () => {
    const before = descriptors();
    const found = await findOnes({ stock: 3 });
    const taken = await found.openNamespace();
    await found.close();
    taken.close();
    await expect(found.openNamespace()).rejects.toThrow("no network namespaces are made any more");
    expect(helpers()).toEqual([]);
    await until("no descriptor left", () => descriptors() === before);
  });

  test.each(["SIGKILL", "SIGSTOP"] as const)(
    "are made by another helper when one got %s, and nobody who waits is told",
    async (signal) => {
      const found = await findOnes();
      (await found.openNamespace()).close();
      const [pid = ""] = helpers();
      process.kill(Number(pid), signal);
      const opened = await found.openNamespace();
      expect(helpers()).not.toContain(pid);
      opened.close();
      await found.close();
      expect(helpers()).toEqual([]);
    },
  );

  test("are not begun anew where it closes while a helper does not answer", async () => {
    const found = await findOnes();
    (await found.openNamespace()).close();
    process.kill(Number(helpers()[0]), "SIGSTOP");
    const refused = expect(found.openNamespace()).rejects.toThrow("stopping");
    await found.close();
    await refused;
    expect(helpers()).toEqual([]);
  });

  test("are made by a helper that knows nothing of its daemon", async () => {
    const server = greeter("a secret of the daemon's");
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const found = await findOnes();
    (await found.openNamespace()).close();
    const [pid = ""] = helpers();
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8")
      .split("\0")
      .filter(Boolean)
      .map((entry) => entry.split("=")[0]);
    expect(environment.toSorted()).toEqual(["NODE_CHANNEL_FD", "NODE_CHANNEL_SERIALIZATION_MODE"]);
    const mine = socketsOf("self");
    // The two ends of a channel are sockets of different names, so none is shared.
    expect(socketsOf(pid).filter((name) => mine.includes(name))).toEqual([]);
    await found.close();
  });
});

const socketsOf = (pid: string): string[] =>
  readdirSync(`/proc/${pid}/fd`)
    .flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
      } catch {
        return [];
      }
    })
    .filter((link) => link.startsWith("socket:"));

describe("of an ordinary user", () => {
  test("a daemon has them too: its browser's network holds its own proxy and nothing of the host", async () => {
    const { child, said } = await script.start("own", "ready", 64_322);
    const found = JSON.parse(said[0] ?? "") as Record<string, string>;
    expect(found).toEqual({
      heard: "greeting",
      host: "ECONNREFUSED",
      isOther: true,
      hasUser: true,
      addresses: ["eth0 inet 10.255.255.2/24", "lo inet 127.0.0.1/8", "lo inet6 ::1/128"],
    });
    child.kill();
    await once(child, "exit");
  });

  test("a daemon killed leaves neither a namespace nor who makes them", async () => {
    const { child, said } = await script.start("hold", "ready", 64_322);
    const [namespace = "", helper = ""] = said;
    expect(holdersOf(namespace)).toContain(`${child.pid}`);
    child.kill("SIGKILL");
    await once(child, "exit");
    await until("nobody in the namespace", () => holdersOf(namespace).length === 0);
    await until("the helper is gone", () => !existsSync(`/proc/${helper}`));
  });
});

test.each([
  ["root's", undefined],
  ["an ordinary user's", 64_322],
])("%s daemon, killed while a browser is in its namespace, leaves neither", async (_whose, uid) => {
  const scratchDirectory = newScratchDirectory();
  if (uid !== undefined) chownSync(scratchDirectory, uid, uid);
  const { child, said } = await script.start(scratchDirectory, "ready", uid);
  const [namespace = "", browsers] = said;
  expect(browsers).toBe(namespace);
  expect(namespace).not.toBe(own());
  expect(holdersOf(namespace).length).toBeGreaterThan(2);
  child.kill("SIGKILL");
  await once(child, "exit");
  await until("nobody in the namespace", () => holdersOf(namespace).length === 0);
  chownSync(scratchDirectory, 0, 0);
  const host = await openTestHost({ scratchDirectory });
  await sweepLeftovers(host);
  expect(await takeCensus(scratchDirectory, new Set())).toEqual(nothing);
  await host.close();
});

describe("where there can be none, the reason is told", () => {
  test("without nsenter", async () => {
    expect(await findNamespaces(parts({ tools: { unshare: tools.unshare } }))).toEqual({
      kind: "unavailable",
      why: "nsenter (util-linux) is not installed",
    });
  });

  test("where what was made cannot be entered", async () => {
    const before = descriptors();
    const why = expect.stringContaining("/bin/false") as string;
    expect(await findNamespaces(parts({ tools: { nsenter: "/bin/false" } }))).toEqual({
      kind: "unavailable",
      why,
    });
    expect(helpers()).toEqual([]);
    await until("no descriptor left", () => descriptors() === before);
  });

  test("to an ordinary user where no user namespaces are allowed", async () => {
    const { said } = await script.start("examine", "ready", forbidding);
    expect(JSON.parse(said[0] ?? "")).toEqual({
      kind: "unavailable",
      why: expect.stringMatching(/unshare.*No space left on device/) as string,
    });
  });
});
