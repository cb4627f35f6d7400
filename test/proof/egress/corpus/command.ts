import type { Attempt, Work } from "./attempt.js";
import type { Page } from "./page.js";

export const frameOf = async (page: Page): Promise<string> =>
  ((await page.command("Page.getFrameTree")).result?.frameTree as { frame: { id: string } } | undefined)
    ?.frame.id ?? "";

/** An attempt of a client over CDP. */
export const command = (name: string, run: Attempt["run"], other: Partial<Attempt> = {}): Attempt => ({
  name: `command: ${name}`,
  needs: ["privileged-cdp"],
  reachesPlain: true,
  run,
  ...other,
});

interface Asked {
  readonly method: string;
  params(work: Work, page: Page): Promise<object> | object;
}

/** One command on a page of the allowed site. */
export const onPage = (name: string, { method, params }: Asked, other: Partial<Attempt> = {}): Attempt =>
  command(
    name,
    async (work) => {
      const page = await work.open();
      await page.command(method, await params(work, page));
      await page.evaluate("await soon(new Promise(() => {}), 300)");
    },
    other,
  );

export const image = (url: string): string => `<img src="${url}" width=9 height=9>`;
