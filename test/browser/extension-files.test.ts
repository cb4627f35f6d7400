import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { unpackExtension } from "../../src/blob/unzip.js";
import type { Host } from "../../src/browser/host.js";
import { PipeClient } from "../support/chromium-client.js";
import { openTestHost } from "../support/chromium-host.js";
import { kinds } from "../support/chromium-kinds.js";
import { makeLauncher } from "../support/chromium-launcher.js";
import { zipBytes } from "../support/zip-bytes.js";

let host: Host;
const { launch, killAll } = makeLauncher(() => host);
beforeAll(async () => {
  host = await openTestHost();
});
afterEach(killAll);
afterAll(() => host.close());

const manifest = {
  manifest_version: 3, name: "reader", version: "1", permissions: ["tabs", "scripting"], host_permissions: ["<all_urls>", "file:///*"],
  content_scripts: [{ matches: ["<all_urls>"], js: ["content.js"] }],
};

/** One that asks for files of the host, as it is kept. */
async function writeArchive(): Promise<string> {
  const path = join(host.scratchDirectory, "reader.zip");
  const files = { "manifest.json": JSON.stringify(manifest), "content.js": "", "page.html": "<title>reader</title>" };
  await writeFile(path, zipBytes(Object.entries(files).map(([name, content]) => ({ name, content }))));
  return path;
}

/** By each means an extension has of its own pages; what it read, or why not. */
const reads = (url: string): string => `Promise.all([
  fetch("${url}").then((answer) => answer.text(), (error) => "refused: " + error),
  new Promise((resolve) => {
    const asked = new XMLHttpRequest();
    asked.onload = () => resolve(asked.responseText);
    asked.onerror = () => resolve("refused");
    asked.open("GET", "${url}");
    asked.send();
  }),
])`;

describe.each(kinds.filter(([, { engine }]) => engine === "chromium"))("in %s", (_, given) => {
  test("an extension that asks for files reads none of the host's", async () => {
    const chromium = await launch(given);
    const path = join(chromium.directories.extensions, "reader");
    const archive = await writeArchive();
    await unpackExtension(archive, path, { maxFiles: 10, maxUnpackedBytes: 10_000 });
    await rm(archive);
    expect(await chromium.load([{ name: "reader", path }], 20_000)).toEqual({ kind: "loaded" });
    const client = new PipeClient(chromium);
    const { extensions: [loaded] } = await client.send("Extensions.getExtensions") as { extensions: { id: string }[] };
    const session = await client.attach();
    await client.open(`chrome-extension://${loaded?.id}/page.html`, session);
    const read = await client.evaluate(reads("file:///etc/hostname"), session);
    expect(read).toEqual([expect.stringContaining("refused"), "refused"]);
  });
});
