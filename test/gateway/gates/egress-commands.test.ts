import { describe, expect, test } from "vitest";
import type { Params } from "../../../src/gateway/cdp/command.js";
import { defaultGate } from "../../../src/gateway/gates/default-gate.js";
import { egressTable } from "../../../src/gateway/gates/egress-commands.js";
import { commands, paramsNamed } from "../../support/gateway/protocol-params.js";

const words = new Set([
  "proxy",
  "bypass",
  "host",
  "hosts",
  "port",
  "ports",
  "address",
  "addresses",
  "server",
  "servers",
  "location",
  "locations",
  "remote",
  "socket",
  "sockets",
  "dns",
  "tunnel",
  "sink",
  "endpoint",
  "origin",
  "origins",
  "domain",
  "header",
  "headers",
  "network",
]);
const speaksOfWays = (name: string): boolean =>
  name.split(/(?=[A-Z])/).some((word) => words.has(word.toLowerCase()));
const domains = ["Target", "Tethering", "Cast"];
const found = [
  ...commands.filter((command) => domains.includes(command.split(".")[0] ?? "")),
  ...paramsNamed(speaksOfWays),
];

const directories = { downloads: "/b/1/downloads", uploads: "/b/1/uploads", temporary: "/b/1/temporary" };
const judge = (method: string, params: Params = {}, session?: string) =>
  defaultGate({ id: 1, method, params, ...(session !== undefined && { session }) }, { directories });

test("every command and parameter of the protocol that may lead past the proxy is classified", () => {
  expect(found).toContain("Target.setRemoteLocations.locations.host");
  expect(found.filter((path) => egressTable[path] === undefined)).toEqual([]);
});

test("nothing is classified that the protocol does not have", () => {
  expect(Object.keys(egressTable).filter((path) => !found.includes(path))).toEqual([]);
});

describe.each([undefined, "a page's session"])("on session %s the gate refuses", (session) => {
  test.each<[string, Params]>([
    // An empty text is a direct connection to Chromium, like direct:// (Chromium 156,
    // docs/chromium.md#ways-past-the-proxy).
    ...["direct://", "http://127.0.0.1:1", "", " ", null, 0, false, ["direct://"], {}].map(
      (proxyServer): [string, Params] => [
        "Target.createBrowserContext",
        { disposeOnDetach: true, proxyServer },
      ],
    ),
    ["Target.createBrowserContext", { proxyBypassList: "127.0.0.1" }],
    ["Target.createBrowserContext", { proxyBypassList: "" }],
    ["Target.setRemoteLocations", { locations: [{ host: "127.0.0.1", port: 6379 }] }],
    ["Target.setRemoteLocations", {}],
    ["Target.exposeDevToolsProtocol", { targetId: "x" }],
    ["Target.openDevTools", { targetId: "x" }],
    ["Tethering.bind", { port: 9000 }],
    ["Cast.enable", {}],
    ["Cast.setSinkToUse", { sinkName: "x" }],
    ["Cast.startDesktopMirroring", { sinkName: "x" }],
    ["Cast.startTabMirroring", { sinkName: "x" }],
  ])("%s %j", (method, params) => {
    expect(judge(method, params, session)).toEqual({
      kind: "refuse",
      message: expect.stringContaining("is refused: ") as string,
    });
  });
});

test.each<[string, Params]>([
  ["Target.createBrowserContext", {}],
  [
    "Target.createBrowserContext",
    { disposeOnDetach: true, originsWithUniversalNetworkAccess: ["https://a.example"] },
  ],
  ["Target.createTarget", { url: "https://a.example/", browserContextId: "c" }],
  ["Target.attachToBrowserTarget", {}],
  ["Network.setExtraHTTPHeaders", { headers: { "Proxy-Authorization": "x" } }],
])("the gate passes %s %j unchanged", (method, params) => {
  expect(judge(method, params)).toEqual({ kind: "pass", command: { id: 1, method, params } });
});
