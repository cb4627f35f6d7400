import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, systemClock } from "../../../../src/base/clock.js";
import { Cdp } from "../../../../src/browser/cdp/cdp.js";
import type { Pipe } from "../../../../src/browser/cdp/pipe.js";
import type { Chromium } from "../../../../src/browser/chromium.js";
import { fillPage } from "../../../../src/browser/fill/fill-page.js";
import type { PageFill, PageFillOutcome } from "../../../../src/spec/page-fill.js";
import { DrivenClock } from "../../driven-clock.js";
import { PipeClient } from "../chromium-client.js";
import { until } from "../chromium-until.js";
import type { FillCase } from "./fill-case.js";

/** Serves one case after another, at two origins. */
export interface FillSite {
  readonly here: string;
  readonly other: string;
  readonly requests: string[];
  serve(shown: Pick<FillCase, "body" | "others">): void;
  /** A text of a case with the origins in their places. */
  placed(text: string): string;
  close(): Promise<void>;
}

export async function openFillSite(): Promise<FillSite> {
  let pages: Readonly<Record<string, string>> = {};
  const requests: string[] = [];
  const server = createServer(({ url = "/" }, response) => {
    requests.push(url);
    const body = pages[url.split("?")[0] ?? "/"];
    if (body === undefined) return response.writeHead(404).end();
    const isScript = url.endsWith(".js");
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    if (isScript) return response.end(body);
    return response.end(`<!doctype html><meta charset="utf-8"><body>${site.placed(body)}`);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const site: FillSite = {
    here: `http://127.0.0.1:${port}`,
    other: `http://localhost:${port}`,
    requests,
    serve: ({ body, others }) => void (pages = { ...others, "/": body }),
    placed: (text) => text.replaceAll("{here}", site.here).replaceAll("{other}", site.other),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
  return site;
}

/** The browser's pipe, on which the first call that has `text` in it, or a later one, waits for `before`. */
export function pausedPipe(
  pipe: Pipe,
  text: string | { readonly text: string; readonly at: number },
  before: () => Promise<unknown>,
): Pipe {
  const meant = typeof text === "string" ? { text, at: 1 } : text;
  let sending: Promise<unknown> = Promise.resolve();
  let seen = 0;
  return {
    ...pipe,
    send(message) {
      const isOne = message.includes(meant.text);
      seen += Number(isOne);
      const isMeant = isOne && seen === meant.at;
      sending = sending.then(() => (isMeant ? before() : undefined)).then(() => pipe.send(message));
    },
  };
}

/** Fills by a client of our own on the pipe. */
export const fillBy = (pipe: Pipe, fill: PageFill, clock: Clock = systemClock): Promise<PageFillOutcome> =>
  fillPage(fill, {
    cdp: new Cdp(pipe, systemClock),
    clock,
    signal: new AbortController().signal,
    hold: () => () => {},
  });

/** What fields of one document hold, by their ids or names; asked in a world that no page has changed. */
const readFields = `(() => {
  const found = {};
  const look = (root) => {
    for (const element of root.querySelectorAll("*")) {
      const shadow = Object.getOwnPropertyDescriptor(Element.prototype, "shadowRoot").get.call(element);
      if (shadow) look(shadow);
      const isField = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement;
      if ((isField || element instanceof HTMLSelectElement) && element.value !== "" && element.type !== "submit")
        found[element.id || element.name || element.className] = element.value;
    }
  };
  const all = Document.prototype.querySelectorAll;
  look({ querySelectorAll: (selector) => all.call(document, selector) });
  const markup = new XMLSerializer().serializeToString(Document.prototype.querySelector.call(document, "html"));
  return { found, isMarked: /secret-/.test(markup) };
})()`;

interface Tree {
  readonly frame: { readonly id: string };
  readonly childFrames?: readonly Tree[];
}
const framesOf = ({ frame, childFrames = [] }: Tree): readonly string[] => [
  frame.id,
  ...childFrames.flatMap(framesOf),
];

/** What all fields of the page and its frames hold that are not empty. */
export async function valuesOf(client: PipeClient): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const { targetId } of [...(await client.targets()), ...(await client.targets("iframe"))]) {
    const session = await client.attach(targetId);
    const { frameTree } = await client.send("Page.getFrameTree", {}, session);
    for (const frameId of framesOf(frameTree as Tree)) {
      const { executionContextId: contextId } = await client.send(
        "Page.createIsolatedWorld",
        { frameId },
        session,
      );
      const { result } = await client.send(
        "Runtime.evaluate",
        { expression: readFields, contextId, returnByValue: true },
        session,
      );
      const { found, isMarked } = (result as { value: { found: Record<string, string>; isMarked: boolean } })
        .value;
      Object.assign(values, found, isMarked ? { marked: "yes" } : {});
    }
    await client.send("Target.detachFromTarget", { sessionId: session });
  }
  return values;
}

/** Opens a case and fills it; the outcome in short, and what stands in the page's fields then. */
export async function tryCase(chromium: Chromium, site: FillSite, given: FillCase) {
  const client = new PipeClient(chromium);
  const session = await client.attach();
  site.serve(given);
  site.requests.length = 0;
  await client.open(`${site.here}/`, session);
  const { beforeWrite, until: settled, limitsEach } = given;
  const settle = async (): Promise<void> => {
    if (settled !== undefined)
      await until("it has changed", () => client.evaluate(site.placed(settled), session));
  };
  const pipe =
    beforeWrite === undefined
      ? chromium.pipe
      : pausedPipe(chromium.pipe, "this.write(", async () => {
          await client.evaluate(`(async () => { await (${site.placed(beforeWrite)}); })()`, session);
          await settle();
        });
  const outcome = await fillBy(pipe, fillOf(given), limitsEach ? new DrivenClock() : systemClock);
  if (beforeWrite === undefined) await settle();
  const values = await valuesOf(client);
  await client.send("Target.detachFromTarget", { sessionId: session });
  return { ...shorten(outcome), values };
}

export const fillOf = ({ fields, timeoutMs = 60_000 }: Pick<FillCase, "fields" | "timeoutMs">): PageFill => ({
  timeout_ms: timeoutMs,
  fields: fields.map(([selector, value]) => ({
    selector,
    value: typeof value === "string" ? { kind: "text", text: value } : value,
  })),
});

export const shorten = (outcome: PageFillOutcome): object =>
  outcome.kind === "refused"
    ? outcome
    : {
        status: outcome.status,
        outcomes: outcome.fields.map(({ status, error_code: code }) =>
          [status, code].filter(Boolean).join(" "),
        ),
      };
