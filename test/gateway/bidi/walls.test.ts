import { once } from "node:events";
import type { Readable } from "node:stream";
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { launchChromium } from "../../support/browser/launch-chromium.js";
import { mapperProgram } from "../../../src/gateway/bidi/running-mapper.js";
import { defaultGatewayLimits } from "../../../src/gateway/limits.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { withoutPrivateRoot } from "../../support/browser/rungs.js";
import { until } from "../../support/browser/chromium-until.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { builtMapper } from "../../support/gateway/built-judge.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { mappersOf } from "../../support/gateway/mappers.js";
import { connectBidi, type RawBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { isLiving, signal } from "../../support/living.js";

let browser: GatewayBrowser;
beforeAll(async () => {
  browser = await openGatewayBrowser();
});
afterAll(async () => browser.close());
beforeEach(() => browser.bed.newLease(browser.chromium.id));

/** A client, and the process of its mapper. */
async function begin(of = browser): Promise<{ client: RawBidi; pid: number; context: string }> {
  // That of a client that has just gone may still be there.
  const before = mappersOf(process.pid);
  const client = await connectBidi(of.bidi());
  const context = await client.begin();
  const [pid = 0] = mappersOf(process.pid).filter((each) => !before.includes(each));
  return { client, pid, context };
}

const statusOf = (pid: number, name: string): string =>
  new RegExp(`^${name}:\\s+(.*)$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";

test("a mapper has the browser's uid and cgroup, no rights, no environment and no network", async () => {
  const { client, pid } = await begin();
  const { isolation, pid: main } = browser.chromium;
  expect(isolation.files).toBe("own");
  expect(statSync(`/proc/${pid}`).uid).toBe(isolation.uid ?? process.getuid?.());
  expect(readFileSync(`/proc/${pid}/cgroup`, "utf8")).toBe(readFileSync(`/proc/${main}/cgroup`, "utf8"));
  for (const rights of ["CapEff", "CapPrm", "CapBnd"]) expect(Number(`0x${statusOf(pid, rights)}`)).toBe(0);
  expect([statusOf(pid, "NoNewPrivs"), statusOf(pid, "Seccomp")]).toEqual(["1", "2"]);
  expect(readFileSync(`/proc/${pid}/environ`, "utf8").replace(/^PWD=\/\0/, "")).toBe("");
  for (const namespace of ["net", "pid", "ipc", "mnt"])
    expect(readlinkSync(`/proc/${pid}/ns/${namespace}`)).not.toBe(readlinkSync(`/proc/self/ns/${namespace}`));
  expect(readFileSync(`/proc/${pid}/net/dev`, "utf8").match(/^ *\w+:/gm)).toEqual([
    expect.stringContaining("lo:"),
  ]);
  await client.close();
});

test("a mapper sees no file of the host but its own program, and writes nowhere", async () => {
  const { client, pid } = await begin();
  const root = `/proc/${pid}/root`;
  const { directories } = browser.chromium;
  for (const closed of ["/etc/passwd", "/etc/shadow", "/root", "/home", "/var", "/run", directories.profile])
    expect([closed, existsSync(`${root}${closed}`)]).toEqual([closed, false]);
  expect(readdirSync(`${root}/proc`).filter((name) => /^\d+$/.test(name)).length).toBeLessThan(5);
  const writable = readFileSync(`/proc/${pid}/mounts`, "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, place, , options = ""]) => place !== "/proc" && options.split(",").includes("rw"));
  expect(writable).toEqual([]);
  await client.close();
});

test("a mapper has a bound on what it allocates, and is the first to go where memory is short", async () => {
  const { client, pid } = await begin();
  const [, most] = /^Max data size +\d+ +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8")) ?? [];
  expect(Number(most)).toBe((256 + 640) * 2 ** 20);
  expect(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim()).toBe("1000");
  await client.close();
});

test("a mapper that hangs is cut with the reason, and its process ends; the lease goes on", async () => {
  const clock = new DrivenClock();
  const own = await openGatewayBrowser({}, { clock });
  onTestFinished(() => own.close());
  const { client, pid } = await begin(own);
  signal(pid, "SIGSTOP");
  // What it does not take from its client is no reason to wait for ever either.
  const text = "x".repeat(64 * 1024);
  for (let id = 100; id < 108; id += 1)
    client.socket.send(JSON.stringify({ id, method: "session.status", params: { text } }));
  await until("more has come than it is sent", () => own.bed.counts.received > 6 * text.length);
  for (let look = 0; look < 4; look += 1) await clock.advance(defaultGatewayLimits.pingMs / 2);
  expect(await client.closed).toEqual({ code: 1013, reason: "the BiDi mapper of this client hangs" });
  await expect.poll(() => isLiving(pid)).toBe(false);
  const cdp = await connectRaw(own.url());
  expect((await cdp.send("Browser.getVersion")).result).toBeDefined();
  await cdp.close();
  const again = await begin(own);
  expect(await again.client.evaluate(again.context, "6 * 7")).toBe(42);
  await again.client.close();
});

test("no mapper outlives its lease, its browser or the gateway", async () => {
  const { client, pid } = await begin();
  await browser.bed
    .local(browser.chromium.id)
    .activity.cutLease(browser.bed.lease(browser.chromium.id), "released");
  expect((await client.closed).code).toBe(4410);
  await expect.poll(() => isLiving(pid)).toBe(false);
  for (const end of ["browser", "gateway"] as const) {
    const own = await openGatewayBrowser();
    onTestFinished(() => own.close());
    const of = await begin(own);
    if (end === "browser") await own.chromium.kill();
    else await own.bed.gateway.close();
    expect([1001, 1011]).toContain((await of.client.closed).code);
    await expect.poll(() => isLiving(of.pid)).toBe(false);
  }
});

test("where there is no private root a mapper has the browser's uid all the same", async () => {
  const host = withoutPrivateRoot(await openTestHost());
  const chromium = await launchChromium(launchSpec(), host);
  onTestFinished(async () => {
    await chromium.close(5000);
    await host.close();
  });
  const mapper = await chromium.startSidecar(mapperProgram(builtMapper(), 64 * 2 ** 20));
  const ended = once(mapper, "exit");
  const [pings, pongs] = mapper.stdio;
  pings?.write("ping");
  const [answer] = (await once(pongs as Readable, "data")) as [Buffer];
  expect(answer.toString()).toBe("ping");
  expect(statSync(`/proc/${mapper.pid}`).uid).toBe(chromium.isolation.uid ?? process.getuid?.());
  expect(statusOf(mapper.pid, "NoNewPrivs")).toBe("1");
  mapper.kill("SIGKILL");
  await ended;
});
