import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll } from "vitest";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { findExecutable } from "../../../src/browser/executable.js";
import { eachFormBed } from "./form-bed.js";
import { token } from "./scripted-forms.js";

export async function openFormBrowser(args: readonly string[] = []): Promise<Browser> {
  const executablePath = await findExecutable("headless-shell");
  if (executablePath === undefined) throw new Error("chromium-headless-shell is not installed");
  return await chromium.launch({ executablePath, args: ["--no-sandbox", ...args] });
}

/** A page, and everything that went wrong in it: errors, and what its policy has refused. */
export interface FormPage {
  readonly page: Page;
  readonly troubles: readonly string[];
  /** Every request, as `POST /open`, with what told the server where it came from. */
  readonly asked: { readonly what: string; readonly referer: string | undefined }[];
}

export async function openFormPage(browser: Browser, options: BrowserContextOptions = {}): Promise<FormPage> {
  const context = await browser.newContext({ locale: "en-GB", ...options });
  const page = await context.newPage();
  const troubles: string[] = [];
  const asked: FormPage["asked"] = [];
  page.on("pageerror", (error) => void troubles.push(String(error)));
  page.on("console", (message) => void (message.type() === "error" && troubles.push(message.text())));
  page.on(
    "request",
    (request) =>
      void asked.push({
        what: `${request.method()} ${request.url()}`,
        referer: request.headers()["referer"],
      }),
  );
  return { page, troubles, asked };
}

/** One browser for all tests of a file, and a server of its own for each. */
export function sharedFormPages() {
  const bed = eachFormBed();
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await openFormBrowser();
  });
  afterAll(() => browser?.close());
  const living = (): Browser => {
    if (!browser) throw new Error("the browser is not started");
    return browser;
  };
  const open = async (options: BrowserContextOptions = {}, given = token): Promise<FormPage> => {
    const opened = await openFormPage(living(), options);
    await opened.page.goto(`${bed().url}/#token=${given}`);
    return opened;
  };
  return { bed, browser: living, open };
}

export const heading = ({ page }: FormPage, name: string): Promise<void> =>
  page.getByRole("heading", { name, exact: true }).waitFor();
export const save = ({ page }: FormPage): Promise<void> =>
  page.getByRole("button", { name: "Save", exact: true }).click();

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** What axe finds wrong with the page as it is now, by WCAG 2.2 AA and by good practice. */
export async function findBarriers(page: Page): Promise<string[]> {
  // In a world of its own, where the page's policy on scripts does not hold.
  const client = await page.context().newCDPSession(page);
  const { frameTree } = await client.send("Page.getFrameTree");
  const { executionContextId: contextId } = await client.send("Page.createIsolatedWorld", {
    frameId: frameTree.frame.id,
  });
  const run = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await client.send("Runtime.evaluate", {
      expression,
      contextId,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return result.value;
  };
  await run(`${axe};0`);
  const options = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] };
  const violations = (await run(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )) as readonly Violation[];
  await client.detach();
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = "" }) => `${id}: ${html} ${failureSummary}`),
  );
}
