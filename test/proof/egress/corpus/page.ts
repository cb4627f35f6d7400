import type { RawCdp, RawReply } from "../../../support/gateway/raw-cdp.js";

/** Helpers of every script: an element that is put in and waited for, and a limit to any promise. */
const prelude = `
const soon = (promise, ms = 2500) => Promise.race([promise, new Promise((resolve) => setTimeout(resolve, ms))]);
const put = (tag, given = {}) => soon(new Promise((resolve) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.onload = element.onerror = resolve;
  document.body.append(element);
}));
`;

/** A page of a raw client. */
export class Page {
  private constructor(
    private readonly cdp: RawCdp,
    readonly target: string,
    readonly session: string,
  ) {}

  /** Opens a page in a window of its own: one behind others would put off much of what it is to do. */
  static async open(cdp: RawCdp, url: string, context?: string): Promise<Page> {
    const where = context === undefined ? {} : { browserContextId: context };
    const { result } = await cdp.send("Target.createTarget", {
      url: "about:blank",
      newWindow: true,
      ...where,
    });
    const target = String(result?.targetId);
    const page = new Page(cdp, target, await cdp.attach(target));
    await page.command("Page.enable");
    await page.goto(url);
    return page;
  }

  command(method: string, params: object = {}): Promise<RawReply> {
    return this.cdp.send(method, params, this.session);
  }

  /** Navigates and waits until the document, be it an error's, has loaded. */
  async goto(url: string): Promise<RawReply> {
    const reply = await this.command("Page.navigate", { url });
    const isLoaded = `new Promise((resolve) => document.readyState === "complete" ? resolve() : addEventListener("load", resolve))`;
    const expression = `Promise.race([${isLoaded}, new Promise((resolve) => setTimeout(resolve, 3000))])`;
    await this.command("Runtime.evaluate", { expression, awaitPromise: true });
    return reply;
  }

  /** Runs the statements as the body of an async function, with the rights of a click. */
  async evaluate(script: string): Promise<unknown> {
    const expression = `(async () => { ${prelude} ${script} })()`;
    const given = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result } = await this.command("Runtime.evaluate", given);
    return (result?.result as { value?: unknown } | undefined)?.value;
  }
}
