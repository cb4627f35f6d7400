import { type Static, Type } from "typebox";
import { parserOf, readonlyList } from "../../base/parser.js";
import type { Cdp } from "../cdp/cdp.js";

/**
 * What a page of an origin can find there: storage and cookies as scripts count them, permissions by name.
 */
const Sight = Type.Object({
  isSecure: Type.Boolean(),
  stored: readonlyList(Type.String()),
  permissions: Type.Record(Type.String(), Type.String()),
});
type Sight = Readonly<Static<typeof Sight>>;
const sightParser = parserOf("a look at an origin", Sight);

const permissions = [
  "geolocation",
  "notifications",
  "camera",
  "microphone",
  "midi",
  "clipboard-read",
  "persistent-storage",
  "window-management",
  "local-fonts",
  "idle-detection",
];

/** Storage that a sandboxed or insecure document lacks throws; such storage is empty. */
const look = `(async () => {
  const stored = [];
  const note = (what, isThere) => { try { if (isThere()) stored.push(what); } catch {} };
  note("cookies", () => document.cookie !== "");
  note("localStorage", () => localStorage.length > 0);
  note("sessionStorage", () => sessionStorage.length > 0);
  const permissions = {};
  for (const name of ${JSON.stringify(permissions)}) {
    permissions[name] = await navigator.permissions.query({ name })
      .then(({ state }) => state, () => "unknown");
  }
  return { isSecure: isSecureContext, stored, permissions };
})()`;

/**
 * Visits an origin as a page would and says what differs there from an origin that nobody has ever visited.
 * The visit is answered here and reaches no network.
 */
export async function findTraces(cdp: Cdp, origin: string): Promise<string[]> {
  const { targetId } = await cdp.send("Target.createTarget", { url: "about:blank", background: true });
  try {
    const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId, flatten: true });
    const stop = answerAll(cdp, session);
    try {
      await cdp.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] }, { session });
      return await tracesIn(cdp, session, origin);
    } finally {
      stop();
    }
  } finally {
    await cdp.send("Target.closeTarget", { targetId });
  }
}

async function tracesIn(cdp: Cdp, session: string, origin: string): Promise<string[]> {
  const seen = await sightOf(cdp, session, `${origin}/`);
  const unusual = Object.entries(seen.permissions).filter(
    ([, state]) => state === "granted" || state === "denied",
  );
  if (unusual.length === 0) return [...seen.stored];
  // The usual states differ by version and mode, and an insecure origin is denied most permissions.
  const usual = await sightOf(cdp, session, `${seen.isSecure ? "https" : "http"}://remuda.invalid/`);
  const changed = unusual.filter(([name, state]) => usual.permissions[name] !== state);
  return [...seen.stored, ...changed.map(([name, state]) => `${name} ${state}`)];
}

async function sightOf(cdp: Cdp, session: string, url: string): Promise<Sight> {
  await cdp.send("Page.navigate", { url }, { session });
  const { result, exceptionDetails } = await cdp.send(
    "Runtime.evaluate",
    { expression: look, awaitPromise: true, returnByValue: true },
    { session },
  );
  if (exceptionDetails) throw new Error(`no look at ${new URL(url).origin}: ${exceptionDetails.text}`);
  return sightParser.value(result.value);
}

/** An icon of its own keeps Chromium from asking the origin for one. */
const blank = Buffer.from("<!doctype html><link rel=icon href='data:,'>").toString("base64");

/** Answers each request of a session's page with a blank document. */
const answerAll = (cdp: Cdp, session: string): (() => void) =>
  cdp.on(
    "Fetch.requestPaused",
    ({ requestId }) => {
      const responseHeaders = [{ name: "content-type", value: "text/html" }];
      cdp
        .send(
          "Fetch.fulfillRequest",
          { requestId: String(requestId), responseCode: 200, responseHeaders, body: blank },
          { session },
        )
        .catch(() => {});
    },
    session,
  );
