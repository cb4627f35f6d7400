import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readlinkSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { findTool } from "../../../src/browser/executable.js";
import { findNamespaces } from "../../../src/egress/namespace/namespace.js";
import type { NamespaceListener } from "../../../src/egress/namespace/spare-namespaces.js";
import { until } from "../../support/browser/chromium-until.js";
import {
  descriptors,
  findOnes,
  greeter,
  helpers,
  holdersOf,
  openedSince,
  parts,
  tools,
} from "../../support/egress/namespaces.js";

const ip = (await findTool("ip")) ?? "";

async function openOne(): Promise<NamespaceListener> {
  const found = await findOnes();
  try {
    return await found.openNamespace();
  } finally {
    await found.close();
  }
}

const connectAndHear =
  "const s=require('net').connect(+process.argv[2],process.argv[1]);s.setTimeout(+process.argv[3],()=>{console.log('silence');process.exit()});s.on('data',d=>console.log(''+d));s.on('error',e=>console.log(e.code))";

/** What a process in the namespace is told at an address within a time, or the error it gets. */
const heardWithin = (
  namespace: string,
  { host = "127.0.0.1", port = 3128, ms = 20_000 } = {},
): Promise<string> =>
  new Promise((resolve) => {
    execFile(
      tools.nsenter,
      [`--net=${namespace}`, process.execPath, "-e", connectAndHear, host, `${port}`, `${ms}`],
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

describe("a namespace", () => {
  test("has its own server behind the address that all of them share, and none outside", async () => {
    const [one, other] = await Promise.all([openOne(), openOne()]);
    await Promise.all([one.listen(greeter("one")), other.listen(greeter("other"))]);
    expect([one.proxyUrl, other.proxyUrl]).toEqual(["http://127.0.0.1:3128", "http://127.0.0.1:3128"]);
    expect(await heardWithin(one.namespace)).toBe("one");
    expect(await heardWithin(other.namespace)).toBe("other");
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
    const heard = await Promise.all(hosts.map((host) => heardWithin(namespace, { host, port, ms: 500 })));
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
    expect(openedSince(before)).toEqual([]);
    await found.close();
    expect(holdersOf(last)).toEqual([]);
  });
});

/** The addresses of this machine, without loopback ones. */
const addresses = (): string[] =>
  [...readFileSync("/proc/net/fib_trie", "utf8").matchAll(/([\d.]+)\n\s+\/32 host LOCAL/g)]
    .map(([, address = ""]) => address)
    .filter((address) => !address.startsWith("127."));

describe("where there can be no namespace, the reason is given", () => {
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
    await until("no descriptor left", () => openedSince(before).length === 0);
  });
});
