// A process that behaves as Chromium does towards its parent: NUL-terminated CDP on descriptors 3 and 4, ends
// with its pipe. Its knobs stand in the JSON text REMUDA_FAKE; see chromium-fake.ts.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";

const knobs = JSON.parse(process.env.REMUDA_FAKE ?? "{}");
const send = (message) => {
  try {
    writeSync(4, `${JSON.stringify(message)}\0`);
  } catch {
    process.exit(0);
  }
};

const profile = process.argv.find((argument) => argument.startsWith("--user-data-dir="))?.split("=")[1];
const writeState = (state) => {
  if (profile && state !== undefined) writeFileSync(`${profile}/Local State`, state);
};

const pages = new Map();
let count = 0;
const infoOf = (targetId) => ({
  targetId,
  type: "page",
  title: "",
  url: pages.get(targetId),
  attached: false,
  canAccessOpener: false,
  browserContextId: "DEFAULT",
});
const openPage = (url) => {
  count += 1;
  const targetId = String(count).padStart(32, "0");
  pages.set(targetId, url);
  send({ method: "Target.targetCreated", params: { targetInfo: infoOf(targetId) } });
  return targetId;
};
const closePage = (targetId) => {
  pages.delete(targetId);
  send({ method: "Target.targetDestroyed", params: { targetId } });
};

/** Loads through the proxy that its switches name, as Chromium would. */
const load = async ({ url }) => {
  const { request } = await import("node:http");
  const given = process.argv
    .find((argument) => argument.startsWith("--proxy-server="))
    ?.slice("--proxy-server=".length);
  const { hostname, port } = new URL(given ?? url);
  return new Promise((resolve) => {
    request({ hostname, port, path: url, headers: { host: new URL(url).host } }, (response) => {
      response.resume();
      const { statusCode, headers } = response;
      resolve({ resource: { success: statusCode < 400, httpStatusCode: statusCode, headers } });
    })
      .on("error", () => resolve({ resource: { success: false } }))
      .end();
  });
};

const extensions = new Map();
let isLive = false;
/** A manifest says how its extension behaves: see chromium-fake.ts. */
const loadExtension = ({ path }) => {
  const { name, version, fake } = JSON.parse(readFileSync(`${path}/manifest.json`, "utf8"));
  if (fake === "refused") throw new Error("the fake refuses it");
  if (fake === "deadly" && !isLive) process.exit(1);
  const id = createHash("sha256")
    .update(path)
    .digest("hex")
    .slice(0, 32)
    .replace(/./g, (digit) => "abcdefghijklmnop"[parseInt(digit, 16)]);
  extensions.set(id, { id, name, version, path, enabled: !isLive || (fake !== "late" && fake !== "deadly") });
  return { id };
};

let sessions = 0;
const attach = () => ({ sessionId: `${(sessions += 1)}`.padStart(32, "F") });

const answers = {
  "Browser.getVersion": () => ({
    protocolVersion: "1.3",
    product: "Chrome/0.0.0.0",
    revision: "@0",
    userAgent: "FakeChromium",
    jsVersion: "0",
  }),
  "Browser.close": () => {
    writeState(knobs.state);
    return setImmediate(() => process.exit(0)) && {};
  },
  "Browser.getWindowForTarget": () => ({ windowId: 1, bounds: {} }),
  "Target.getTargets": () => ({ targetInfos: [...pages.keys()].map(infoOf) }),
  "Target.setDiscoverTargets": () => void setImmediate(() => openPage("about:blank")),
  "Target.getBrowserContexts": () => ({ browserContextIds: [] }),
  "Target.createTarget": ({ url }) => ({ targetId: openPage(url) }),
  "Target.closeTarget": ({ targetId }) => (closePage(targetId), { success: true }),
  "Target.attachToTarget": attach,
  "Target.attachToBrowserTarget": attach,
  "Network.loadNetworkResource": load,
  "Page.navigate": () => ({ frameId: "1", loaderId: "1" }),
  "Storage.getCookies": () => ({ cookies: [] }),
  "Emulation.getScreenInfos": () => ({ screenInfos: [] }),
  "Extensions.getExtensions": () => ({ extensions: [...extensions.values()] }),
  "Extensions.loadUnpacked": loadExtension,
  "Extensions.uninstall": ({ id }) => void extensions.delete(id),
  // Every script of a page succeeds; what copies nothing says so.
  "Runtime.evaluate": () => ({ result: { type: "boolean", value: true } }),
};

let isMute = false;
/** What a launch may still send then, to attest the egress; no probe is made of these. */
const attesting = ["Target.attachToTarget", "Network.loadNetworkResource", "Target.detachFromTarget"];
const answer = (method, params) => {
  try {
    return answers[method]?.(params) ?? {};
  } catch (error) {
    return { error: { code: -32000, message: error.message } };
  }
};
const take = ({ id, method, params, sessionId }) => {
  if (method === knobs.exitOn) process.exit(knobs.exitCode ?? 0);
  if ((isMute && !attesting.includes(method)) || (knobs.ignore ?? []).includes(method)) return;
  const address = sessionId === undefined ? {} : { sessionId };
  // A launch has loaded its extensions when it attests.
  if (method === "Network.loadNetworkResource") isLive = true;
  const result = answer(method, params ?? {});
  if (result.error) return send({ id, error: result.error, ...address });
  if (result instanceof Promise) void result.then((late) => send({ id, result: late, ...address }));
  else send({ id, result, ...address });
  // A real probe is a getVersion too, so muteness begins after the last command but those that a launch
  // sends.
  if (knobs.muteAfterLaunch && method === "Browser.getWindowForTarget") isMute = true;
};

const start = () => {
  if (profile) mkdirSync(`${profile}/Default`, { recursive: true });
  if (knobs.exitAfterMs !== undefined) setTimeout(() => process.exit(knobs.exitCode ?? 0), knobs.exitAfterMs);
  let rest = "";
  // A file stream would block a thread in read(2), which Node.js waits for before it exits.
  new Socket({ fd: 3, writable: false })
    .setEncoding("utf8")
    .on("data", (chunk) => {
      const parts = (rest + chunk).split("\0");
      rest = parts.pop() ?? "";
      for (const part of parts) take(JSON.parse(part));
    })
    .on("close", () => process.exit(0))
    .on("error", () => process.exit(0));
};

for (const line of knobs.lines ?? []) process.stderr.write(`${line}\n`);
if (process.argv.includes("--version")) {
  process.stdout.write("FakeChromium 0.0.0.0\n");
} else if (knobs.failWithCode !== undefined) {
  setTimeout(() => process.exit(knobs.failWithCode), knobs.delayMs ?? 0);
} else {
  writeState(knobs.state && "half");
  setTimeout(start, knobs.delayMs ?? 0);
}
