import { existsSync, readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../../support/browser/chromium-until.js";
import type { ClientAttempt, Work } from "./attempt.js";
import { command } from "./command.js";
import { reading } from "./reading.js";

const isThere = (work: Work, path: string): boolean => existsSync(work.machine.seen(path));

const savedLimitMs = 10_000;
/** Waits until a download lies in one of these places: a browser that is kept from one has another for it. */
export const untilSaved = (work: Work, paths: readonly string[]): Promise<unknown> =>
  until("a download", () => paths.some((path) => isThere(work, path)), savedLimitMs).catch(() => {});

/**
 * Saves a download under a name while the browser is told to put downloads into a directory of the machine.
 */
async function saveInto(
  work: Work,
  tell: (directory: string) => Promise<unknown>,
  name: string,
): Promise<void> {
  const directory = work.machine.directory;
  await tell(directory);
  const page = await work.open();
  await page.evaluate(
    `Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob(["mark"])), download: ${JSON.stringify(name)} }).click();`,
  );
  const files = [join(directory, name), join("/tmp", name)];
  await untilSaved(work, [...files, join(work.browser.root, "Downloads", name)]);
  for (const file of files) if (isThere(work, file)) work.saw(`wrote ${file}`);
}

const writing: readonly ClientAttempt[] = [
  command(
    "Browser.setDownloadBehavior to a directory of the host",
    async (work) => {
      const name = `${work.nonce}-saved.txt`;
      await saveInto(
        work,
        (downloadPath) => work.cdp.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath }),
        name,
      );
    },
    { isQuick: true },
  ),
  command("Page.setDownloadBehavior to a directory of the host", async (work) => {
    const name = `${work.nonce}-saved.txt`;
    await saveInto(
      work,
      async (downloadPath) =>
        (await work.open()).command("Page.setDownloadBehavior", { behavior: "allow", downloadPath }),
      name,
    );
  }),
  command(
    "a download's name that climbs",
    async (work) => {
      const name = `../../../../../../../..${work.machine.directory}/${work.nonce}-climbed.txt`;
      await work.cdp.send("Browser.setDownloadBehavior", {
        behavior: "allow",
        downloadPath: `${work.browser.root}/Downloads`,
      });
      const url = work.serve("/climb", {
        body: "mark",
        headers: {
          "content-disposition": `attachment; filename="${name}"`,
          "content-type": "application/octet-stream",
        },
      });
      const page = await work.open();
      await page.command("Page.navigate", { url });
      const climbed = `${work.nonce}-climbed.txt`;
      const outer = join(work.machine.directory, climbed);
      const isInner = (file: string): boolean => file.includes(climbed);
      const inner = work.machine.seen(join(work.browser.root, "Downloads"));
      const isSaved = (): boolean => isThere(work, outer) || readdirSync(inner).some(isInner);
      await until("the download", isSaved, savedLimitMs).catch(() => {});
      if (isThere(work, outer)) work.saw("wrote out of its downloads");
    },
    { succeedsPlain: { because: "Chromium drops the directories of a download's name" } },
  ),
  command(
    "Extensions.loadUnpacked of a directory of the host",
    async (work) => {
      const path = join(work.machine.directory, `extension-${work.nonce}`);
      const file = work.machine.seen(path);
      await mkdir(file, { recursive: true });
      await writeFile(
        join(file, "manifest.json"),
        JSON.stringify({ manifest_version: 3, name: work.nonce, version: "1", description: "of the host" }),
      );
      const { result } = await work.cdp.send("Extensions.loadUnpacked", { path });
      if (result?.["id"] !== undefined) work.saw("loaded a directory of the host");
    },
    { needsChromium: true },
  ),
  command(
    "Extensions.loadUnpacked of the root directory",
    async (work) => {
      const { error, result } = await work.cdp.send("Extensions.loadUnpacked", { path: "/etc" });
      // Chromium says where it looked for the manifest only once it has looked.
      if (result !== undefined || /[Mm]anifest/.test(error?.message ?? "")) work.saw("looked into /etc");
    },
    { needsChromium: true },
  ),
];

const telling: readonly ClientAttempt[] = [
  command("Browser.getBrowserCommandLine and SystemInfo", async (work) => {
    const got = [
      await work.cdp.send("Browser.getBrowserCommandLine"),
      await work.cdp.send("SystemInfo.getInfo"),
      await work.cdp.send("SystemInfo.getProcessInfo"),
    ];
    const others = ((got[2]?.result?.["processInfo"] ?? []) as { id: number }[]).map(({ id }) => id);
    // A browser in a process namespace of its own has small numbers.
    if (others.includes(await work.browser.mainPid())) work.saw("process ids of the host");
    return got;
  }),
  command("Target.exposeDevToolsProtocol", async (work) => {
    const page = await work.open();
    const { error } = await work.cdp.send("Target.exposeDevToolsProtocol", {
      targetId: page.target,
      bindingName: "held",
    });
    if (error === undefined) work.saw("a page holds CDP, past the gate");
  }),
  command(
    "Browser.crash",
    async (work) => {
      const before = await work.browser.mainPid();
      void work.cdp.send("Browser.crash");
      const isOver = async (): Promise<boolean> => (await work.browser.mainPid().catch(() => 0)) !== before;
      if (await work.shows(isOver)) work.saw("the browser crashed");
    },
    { isAlone: true },
  ),
];

export const commands: readonly ClientAttempt[] = [...reading, ...writing, ...telling];
