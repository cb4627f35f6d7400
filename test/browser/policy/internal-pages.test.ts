import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtinExtensions } from "../../../src/base/builtin-extensions.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { whyNotOpened } from "../../../src/gateway/gates/internal-pages.js";
import { openPlain } from "../../proof/egress/plain.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { internalPages } from "../../support/browser/internal-pages.js";
import { until } from "../../support/browser/chromium-until.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

const closed = internalPages.flatMap(({ url, how }) => (how === "closed" ? [url] : []));

let host: BrowserHost;
const { launch, killAll } = makeLauncher(() => host);
beforeAll(async () => {
  host = await openTestHost();
});
afterAll(async () => {
  await killAll();
  await host.close();
});

describe("a Chromium without policy has", () => {
  let cdp: RawCdp;
  const closings: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    const source = await openPlain();
    const access = await source.open("listed");
    cdp = await connectRaw(access.cdpUrl);
    closings.push(
      () => cdp.close(),
      () => access.close(),
      () => source.close(),
    );
  });
  afterAll(async () => {
    for (const close of closings) await close();
  });

  const read = async (url: string, expression: string): Promise<unknown> => {
    const { result } = await cdp.send("Target.createTarget", { url });
    const session = await cdp.attach(String(result?.targetId));
    return await until(url, async () => (await cdp.evaluate(expression, session)) || undefined);
  };

  test("no page that nobody has judged, and all that are judged", async () => {
    const walk = `(() => {
      const text = (node) => [...node.childNodes].map((each) => (each.nodeType === 3 ? each.textContent + "\\n" : each.shadowRoot ? text(each.shadowRoot) : text(each))).join("");
      const found = text(document.body).match(/^\\s*chrome(-untrusted)?:\\/\\/\\S+/gm) ?? [];
      return found.length > 150 ? [...new Set(found.map((each) => each.trim()))] : undefined;
    })()`;
    const found = (await read("chrome://chrome-urls/", walk)) as string[];
    const known = internalPages.map(({ url }) => url);
    expect([
      found.filter((url) => !known.includes(url)),
      known.filter((url) => !found.includes(url)),
    ]).toEqual([[], []]);
  });

  test("no extension of its own that nobody has judged", async () => {
    const text = (await read(
      "chrome://extensions-internals/",
      `document.body.innerText.startsWith("[") && document.body.innerText`,
    )) as string;
    const own = (JSON.parse(text) as { id: string; location: string }[])
      .filter(({ location }) => /COMPONENT/.test(location))
      .map(({ id }) => id);
    expect(own).toEqual([...builtinExtensions]);
  });
});

test.each(internalPages)("the gate opens $url for nobody", ({ url }) => {
  expect(
    [url, `view-source:${url}`, url.toUpperCase(), `${url}/x?y#z`].filter(
      (each) => whyNotOpened(each) === undefined,
    ),
  ).toEqual([]);
});

/** What becomes of a page that goes there, and what powers its scripts have then. */
interface Visit {
  readonly url: string;
  readonly error: unknown;
  readonly powers: unknown;
}

const withPolicy = engines.filter(([, { engine }]) => engine === "chromium");
/** Tabs that visit at once: a visit waits for Chromium's processes more than it computes. */
const tabs = 4;

// Past the gate, as an extension's chrome.tabs is.
describe.each(withPolicy)("in %s policy closes", (_, given) => {
  let client: PipeClient;
  beforeAll(async () => {
    client = new PipeClient(await launch(given));
  });

  const openTab = async (): Promise<{ target: string; session: string }> => {
    const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
    return { target: targetId as string, session: await client.attach(targetId as string) };
  };

  async function visitIn(session: string, url: string): Promise<Visit> {
    const { errorText: error } = await client.send("Page.navigate", { url }, session);
    const powers = await client.evaluate(
      `[typeof chrome === "object" && typeof chrome.send, typeof Mojo].join()`,
      session,
    );
    return { url, error, powers };
  }

  /** Each in a tab that begins blank. */
  async function visit(url: string): Promise<Visit> {
    const { target, session } = await openTab();
    const visited = await visitIn(session, url);
    await client.send("Target.closeTarget", { targetId: target });
    return visited;
  }

  /** All of them, each tab one after the other. */
  async function visitAll(urls: readonly string[]): Promise<readonly Visit[]> {
    const left = [...urls];
    const visited: Visit[] = [];
    const work = async (): Promise<void> => {
      const { target, session } = await openTab();
      for (let url = left.shift(); url !== undefined; url = left.shift())
        visited.push(await visitIn(session, url));
      await client.send("Target.closeTarget", { targetId: target });
    };
    await Promise.all(Array.from({ length: tabs }, work));
    return visited;
  }

  // The page of new tabs is what policy names, about:blank.
  const isClosed = ({ url, error, powers }: Visit): boolean =>
    powers === "undefined,undefined" &&
    (url === "chrome://newtab"
      ? error === undefined
      : error === "net::ERR_BLOCKED_BY_ADMINISTRATOR" ||
        error === "net::ERR_ABORTED" ||
        error === "net::ERR_INVALID_URL");

  test("every page of its own: an error is shown instead, which has none of its powers", async () => {
    const visited = await visitAll(closed);
    expect(visited.filter((each) => !isClosed(each))).toEqual([]);
    expect(visited).toHaveLength(closed.length);
  }, 180_000);

  test.each([
    "file:///etc/passwd",
    "view-source:file:///etc/passwd",
    "devtools://devtools/bundled/inspector.html",
    "isolated-app://x",
    "mailto:a@b.c",
    "ssh://x",
    "intent://x",
    "content://x",
    "externalfile:x",
    "magnet:?x",
    "ms-word:x",
    "chrome-distiller://x/",
    "ftp://127.0.0.1/",
    "unheard-of:x",
    "devtools://devtools/remote/serve_file/@0123456789012345678901234567890123456789/inspector.html",
  ])("%s", async (url) => expect((await visit(url)).error).toBe("net::ERR_BLOCKED_BY_ADMINISTRATOR"));

  test("the source of its pages", async () => {
    const { targetId } = await client.send("Target.createTarget", { url: "view-source:chrome://settings" });
    const session = await client.attach(targetId as string);
    await until("the error page", async () =>
      String(await client.evaluate("document.body?.innerText", session).catch(() => "")).includes("blocked"),
    );
    await client.send("Target.closeTarget", { targetId });
  });

  test.each([
    "about:blank",
    "data:text/html,<title>data</title>",
    "view-source:data:text/html,x",
    "javascript:0",
  ])("and not %s", async (url) => {
    expect((await visit(url)).error).not.toBe("net::ERR_BLOCKED_BY_ADMINISTRATOR");
  });
});
