import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { crxBytes } from "../../../support/archive/crx-bytes.js";
import { type ZipPart, zipBytes } from "../../../support/archive/zip-bytes.js";
import { intrude } from "../intrude.js";
import { symbolicLink } from "../unpack-anything.js";
import { type ClientAttempt, NothingProved, type Work } from "./attempt.js";

const archive = (
  name: string,
  run: ClientAttempt["run"],
  other: Partial<ClientAttempt> = {},
): ClientAttempt => ({
  name: `archive: ${name}`,
  vector: "extension",
  needsChromium: true,
  isAlone: other.isQuick === true ? "extensions" : true,
  succeedsPlain: true,
  ...other,
  run,
});

const manifestOf = ({ nonce }: Work): ZipPart => ({
  name: "manifest.json",
  content: JSON.stringify({ manifest_version: 3, name: nonce, version: "1" }),
});
const link = (name: string, to: string): ZipPart => ({ name, content: to, mode: symbolicLink });

/** What an extension's directories hold by now, those of links too. */
async function linksIn({ browser, machine }: Work): Promise<string[]> {
  const entries = await readdir(machine.seen(join(browser.root, "extensions")), { recursive: true }).catch(
    () => [],
  );
  return entries
    .filter((name) => name.includes("held-"))
    .map((name) => join(browser.root, "extensions", name));
}

/** Hands the browser every link that was unpacked, as a file that a page may have. */
const linking = (
  name: string,
  entriesOf: (work: Work) => readonly ZipPart[],
  other: Partial<ClientAttempt> & { readonly below?: string } = {},
): ClientAttempt =>
  archive(
    name,
    async (work) => {
      if (!(await work.browser.unpack([manifestOf(work), ...entriesOf(work)]))) return "refused";
      return await work.readFiles((await linksIn(work)).map((path) => path + (other.below ?? "")));
    },
    other,
  );

/** A name that leads out of the archive; the mark lies there, then. */
const climbing = (
  name: string,
  nameOf: (work: Work, mark: string) => readonly ZipPart[],
  other: Partial<ClientAttempt> = {},
): ClientAttempt =>
  archive(
    name,
    async (work) => {
      const mark = join(work.machine.directory, `${work.nonce}-unpacked.txt`);
      const isTaken = await work.browser.unpack([manifestOf(work), ...nameOf(work, mark)]);
      if (existsSync(work.machine.seen(mark)) || existsSync(mark)) work.saw(`wrote ${mark}`);
      return isTaken;
    },
    other,
  );

const up = "../".repeat(12);

/** One of a packed extension that policy installs, with links in what is packed. */
async function packLinks(work: Work): Promise<unknown> {
  const asked = { permissions: ["webRequest", "webRequestBlocking"] };
  const inner = [
    {
      name: "manifest.json",
      content: JSON.stringify({ manifest_version: 3, name: work.nonce, version: "1", ...asked }),
    },
    ...linksTo(work),
  ];
  const outer = {
    name: "manifest.json",
    content: JSON.stringify({ manifest_version: 3, name: work.nonce, version: "1", ...asked }),
  };
  const update =
    "<?xml version='1.0'?><gupdate><app appid='x'><updatecheck codebase='http://127.0.0.1:10001/x.crx' version='1' /></app></gupdate>";
  if (
    !(await work.browser.unpack([
      outer,
      { name: "packed.crx", content: crxBytes(zipBytes(inner)) },
      { name: "update.xml", content: update },
    ]))
  )
    return "refused";
  return await (await work.renewed()).readFiles(await linksIn(work));
}

const linksTo = ({ targets }: Work): readonly ZipPart[] =>
  targets.map(({ path }, at) => link(`held-${at}.txt`, path));

/**
 * A program in the browser's place puts links to everything into its profile. No link may be in what its
 * holder can have of it, nor what links lead to.
 */
async function keepLinks(work: Work): Promise<unknown> {
  const browser = await work.openKeeping();
  try {
    const into = `${browser.root}/profile`;
    const [place] = await browser.places();
    if (place)
      await intrude(place, ["plant_links"], {
        file: work.targets.map(({ path }) => path),
        into,
        nonce: work.nonce,
        seconds: 20,
      });
    const planted = (await readdir(work.machine.seen(into))).filter((name) => name.includes(work.nonce));
    if (planted.length === 0) throw new NothingProved("no link could be planted");
    const saved = (await browser.save()).toString("latin1");
    if (saved.includes(work.nonce)) work.saw("a link was saved with the profile");
    return saved;
  } finally {
    await browser.close();
  }
}

/**
 * What callers hand in is unpacked, and what browsers leave is packed: extensions (zip, and a packed one in
 * it), profiles (tar).
 */
export const archives: readonly ClientAttempt[] = [
  linking("symbolic links in an extension", linksTo, { isQuick: true }),
  linking("symbolic links by dots in an extension", ({ targets }) =>
    targets.map(({ path }, at) => link(`held-${at}.txt`, `${up}${path.slice(1)}`)),
  ),
  linking(
    "a symbolic link to a directory, and files by way of it",
    ({ targets }) => {
      const path = targets.find(({ what }) => what === "a file in /tmp")?.path ?? "";
      return [link("held-all", path.slice(0, path.lastIndexOf("/")))];
    },
    { below: "/held.txt" },
  ),
  climbing(
    "a name with dots in an extension",
    (_, mark) => [{ name: `${up}${mark.slice(1)}`, content: "mark" }],
    { isQuick: true },
  ),
  climbing("a name with dots behind a directory", (_, mark) => [
    { name: `pages/${up}${mark.slice(1)}`, content: "mark" },
  ]),
  climbing("an absolute name in an extension", (_, mark) => [{ name: mark, content: "mark" }]),
  climbing("a file behind a symbolic link of the same archive", ({ machine, nonce }) => [
    link("held-there", machine.directory),
    { name: `held-there/${nonce}-unpacked.txt`, content: "mark" },
  ]),
  climbing(
    "a name with backslashes",
    (_, mark) => [{ name: `${up}${mark.slice(1)}`.replaceAll("/", "\\"), content: "mark" }],
    { succeedsPlain: { because: "here they are letters of a name" } },
  ),
  archive("links in a packed extension", packLinks, {
    succeedsPlain: { because: "Chromium unpacks it, and makes no links" },
  }),
  archive("symbolic and hard links in a profile that is saved", keepLinks, { vector: "outside" }),
];
