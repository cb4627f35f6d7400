import { expect, test } from "vitest";
import type { LaunchSpec } from "../../src/browser/chromium.js";
import { switchesOf } from "../../src/browser/switches.js";
import { launchSpec } from "../support/browser/chromium-host.js";

const facts = { profile: "/profile", sandbox: "namespace", majorVersion: "156" } as const;
const nameOf = (text: string): string => text.split("=")[0] ?? "";

const booleans = [true, false];
const proxyUrl = "http://127.0.0.1:3128";
const proxies: Partial<LaunchSpec>[] = [
  {},
  { egress: { proxyUrl } },
  { egress: { proxyUrl, namespace: "/proc/1/fd/9" } },
];
const every: LaunchSpec[] = (["chromium", "headless-shell"] as const).flatMap((engine) =>
  booleans.flatMap((headless) =>
    booleans.flatMap((stealth) =>
      booleans.flatMap((kioskMode) =>
        proxies.map((proxy) => launchSpec({ engine, headless, stealth, kioskMode, ...proxy })),
      ),
    ),
  ),
);

test("no switch occurs twice, for Chromium heeds only the last of its name", () => {
  for (const spec of every) {
    const names = switchesOf(spec, { ...facts, sandbox: "none" }).map(nameOf);
    expect(new Set(names).size, names.join(" ")).toBe(names.length);
  }
});

test("the sandbox is given up only where neither kind of it works", () => {
  const has = (sandbox: "namespace" | "setuid" | "none"): boolean =>
    switchesOf(launchSpec(), { ...facts, sandbox }).includes("--no-sandbox");
  expect([has("namespace"), has("setuid"), has("none")]).toEqual([false, false, true]);
});

test("extensions are switched off only where neither policy nor a namespace keeps them to the proxy", () => {
  const isOff = (given: Partial<LaunchSpec>, lacksPolicy: boolean): boolean =>
    switchesOf(launchSpec({ engine: "chromium", ...given }), { ...facts, lacksPolicy }).includes(
      "--disable-extensions",
    );
  expect(proxies.map((proxy) => [isOff(proxy, true), isOff(proxy, false)])).toEqual([
    [false, false],
    [true, false],
    [false, false],
  ]);
});

test("only a browser for which policy installs an extension may update extensions, and a headless-shell never has any", () => {
  const isSilent = (engine: LaunchSpec["engine"], hasForced: boolean): boolean =>
    switchesOf(launchSpec({ engine }), { ...facts, hasForced }).includes("--disable-background-networking");
  expect([isSilent("chromium", false), isSilent("chromium", true)]).toEqual([true, false]);
  const shell = (hasForced: boolean): string[] =>
    switchesOf(launchSpec({ engine: "headless-shell" }), { ...facts, hasForced });
  expect(shell(true)).toEqual(shell(false));
});

test("no switch opens a port, and extensions are never switched off without need", () => {
  for (const spec of every) {
    const names = switchesOf(spec, facts).map(nameOf);
    expect(names).not.toContain("--remote-debugging-port");
    expect(names).not.toContain("--disable-extensions");
    expect(names).toContain("--remote-debugging-pipe");
  }
});

test("the first page is the last argument and the only one that is no switch", () => {
  for (const spec of every) {
    expect(switchesOf(spec, facts).filter((text) => !text.startsWith("--"))).toEqual(["about:blank"]);
    expect(switchesOf(spec, facts).at(-1)).toBe("about:blank");
  }
});

test("a browser with egress is sent through its proxy by every switch that a way round is known for, in both tiers alike", () => {
  for (const spec of every.filter(({ egress }) => egress)) {
    expect(switchesOf(spec, facts)).toEqual(
      expect.arrayContaining([
        "--proxy-server=http://127.0.0.1:3128",
        "--proxy-bypass-list=<-loopback>",
        "--disable-quic",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
      ]),
    );
  }
});
