import { readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import {
  symlinkSync,
  mkdirSync,
  rmSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Chromium, KeptWorkspace } from "../../src/browser/chromium.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { usualLimits } from "../../src/browser/resources/limits.js";
import { type FilledSpec, launchChromium } from "../support/browser/launch-chromium.js";
import { nothing, takeCensus } from "../support/browser/chromium-census.js";
import { PipeClient } from "../support/browser/chromium-client.js";
import { launchSpec, openTestHost } from "../support/browser/chromium-host.js";
import { engines } from "../support/browser/chromium-kinds.js";
import { openTestEgress, publicRules } from "../support/browser/browser-egress.js";
import { fillDisk } from "../support/browser/full-disk.js";
import {
  marks,
  nextRoom,
  writeBrokenExtension,
  writeExtension,
  writeInto,
} from "../support/archive/extension-files.js";
import { type LoginSite, lookAround, moveIn, openLoginSite } from "../support/browser/sites/login-site.js";

let host: BrowserHost;
let site: LoginSite;
const started: Chromium[] = [];
const lefts: KeptWorkspace[] = [];
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openLoginSite()]);
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((chromium) => chromium.kill()));
  await Promise.all(lefts.splice(0).map((keptWorkspace) => keptWorkspace.discard()));
  expect(await takeCensus(host.scratchDirectory, new Set())).toEqual(nothing);
});
afterAll(async () => {
  await Promise.all([host.close(), site.close()]);
});

const limitMs = 100_000;
function kept(chromium: Chromium): Chromium {
  started.push(chromium);
  return chromium;
}
const leave = async (chromium: Chromium): Promise<KeptWorkspace> => {
  const keptWorkspace = await chromium.stopAndKeep(limitMs);
  lefts.push(keptWorkspace);
  return keptWorkspace;
};
const start = async (spec: FilledSpec): Promise<Chromium> => kept(await launchChromium(spec, host));
const startAgain = async (spec: FilledSpec, keptWorkspace: KeptWorkspace): Promise<Chromium> => {
  const chromium = kept(
    await launchChromium({ fillWorkspace: async () => keptWorkspace.extensions, ...spec }, host, {
      adopt: keptWorkspace,
    }),
  );
  lefts.splice(lefts.indexOf(keptWorkspace), 1);
  return chromium;
};
async function open(chromium: Chromium, path: string): Promise<{ client: PipeClient; session: string }> {
  const client = new PipeClient(chromium);
  const session = await client.attach();
  await client.open(`${site.origin}${path}`, session);
  return { client, session };
}

test.runIf(process.getuid?.() === 0)(
  "its proxy admits its uid for as long as it runs, at each start, and no more when another may have that uid",
  async () => {
    const made = await openTestEgress("proxy", publicRules, host);
    const told: string[] = [];
    const admit = (uid: number): (() => void) => {
      told.push(`admitted ${uid}`);
      return () => void told.push(`${host.uids?.isTaken(uid) ? "taken" : "free"} ${uid}`);
    };
    const spec = launchSpec({ egress: { ...made.proxy, admit } });
    const first = await start(spec);
    const { uid } = first.isolation;
    const keptWorkspace = await leave(first);
    expect(told.splice(0)).toEqual([`admitted ${uid}`, `taken ${uid}`]);
    const second = await startAgain(spec, keptWorkspace);
    expect(told.splice(0)).toEqual([`admitted ${uid}`]);
    await second.kill();
    expect(told).toEqual([`taken ${uid}`]);
    expect(host.uids?.isTaken(uid ?? 0)).toBe(false);
    await made.egress.close();
  },
);

describe.each(engines)("%s", (_, given) => {
  test("leaves its directories and uid, and nothing else; started again it keeps login, storage and databases", async () => {
    const spec = launchSpec(given);
    const first = await start(spec);
    const { client, session } = await open(first, "/login");
    await client.evaluate(moveIn, session);

    const keptWorkspace = await leave(first);
    expect(keptWorkspace).toMatchObject({
      isWhole: true,
      directories: first.directories,
      uid: first.isolation.uid,
    });
    expect(await takeCensus(host.scratchDirectory, new Set())).toEqual({
      ...nothing,
      directories: [basename(keptWorkspace.directories.root)],
    });

    const second = await startAgain(spec, keptWorkspace);
    expect(second.isolation.uid).toBe(first.isolation.uid);
    expect(await new PipeClient(second).targets()).toMatchObject([{ url: "about:blank" }]);
    const again = await open(second, "/");
    expect(await again.client.evaluate(lookAround, again.session)).toBe("welcome back, stored, kept");
    expect(await second.reset(limitMs)).toEqual({ differences: ["profile: used before the launch"] });
    await second.close(limitMs);
  });

  test("started again it is still logged in where that was for as long as it ran", async () => {
    const spec = launchSpec(given);
    const first = await start(spec);
    await open(first, "/login-for-now");
    const second = await startAgain(spec, await leave(first));
    const { client, session } = await open(second, "/");
    expect(await client.evaluate("document.title", session)).toBe("welcome back");
    expect(await client.send("Storage.getCookies")).toMatchObject({
      cookies: [{ name: "session", session: true, httpOnly: true, sameSite: "Lax" }],
    });
  });

  test("started again after its processes were killed it shows one blank page, and its locks do not trouble it", async () => {
    const spec = launchSpec(given);
    const first = await start(spec);
    const { client, session } = await open(first, "/login");
    await client.send("Target.createTarget", { url: `${site.origin}/tab` });
    await client.evaluate(moveIn, session);
    // Nothing answers the wish to exit.
    process.kill(-first.pid, "SIGSTOP");
    const keptWorkspace = await first.stopAndKeep(300);
    lefts.push(keptWorkspace);
    expect(keptWorkspace.isWhole).toBe(false);
    const second = await startAgain(spec, keptWorkspace);
    expect(await new PipeClient(second).targets()).toMatchObject([{ url: "about:blank" }]);
    await second.probe(limitMs);
  });
});

test.runIf(process.getuid?.() === 0)(
  "a browser whose disk is full goes on where its cookies cannot be written down, and is left once there is room",
  async () => {
    const limits = { ...usualLimits, maxScratchBytes: 64 * 2 ** 20 };
    const small = await openTestHost({ limits });
    const chromium = await launchChromium(launchSpec(), small);
    const { client, session } = await open(chromium, "/login-for-now");
    const filler = await fillDisk(chromium.directories.downloads);
    for (const keep of [() => chromium.keepCookies(limitMs), () => chromium.stopAndKeep(limitMs)])
      await expect(keep()).rejects.toMatchObject({ code: "ENOSPC" });
    expect(await client.evaluate("document.title", session)).toBe("who are you");
    await rm(filler);
    const keptWorkspace = await chromium.stopAndKeep(limitMs);
    expect(keptWorkspace.isWhole).toBe(true);
    await keptWorkspace.discard();
    await small.close();
  },
);

test("extensions given at the launch and those loaded later are there again", async () => {
  const spec = launchSpec({
    engine: "chromium",
    fillWorkspace: async ({ directories }) => [await writeExtension(directories.extensions, "given")],
  });
  const first = await start(spec);
  expect(await first.load([await writeInto(nextRoom(first), "later")], limitMs)).toEqual({ kind: "loaded" });
  const keptWorkspace = await leave(first);
  expect(keptWorkspace.extensions.map(({ name }) => name)).toEqual(["given", "later"]);
  const second = await startAgain(
    { ...spec, fillWorkspace: async () => keptWorkspace.extensions },
    keptWorkspace,
  );
  expect(second.extensions).toEqual(keptWorkspace.extensions);
  const { client, session } = await open(second, "/");
  expect(await client.evaluate(marks, session)).toBe("given,later");
});

test("one that is not given again is gone, though its directory is still there", async () => {
  const spec = launchSpec({
    engine: "chromium",
    fillWorkspace: async ({ directories }) => [await writeExtension(directories.extensions, "given")],
  });
  const keptWorkspace = await leave(await start(spec));
  const second = await startAgain({ ...spec, fillWorkspace: async () => [] }, keptWorkspace);
  const { client, session } = await open(second, "/");
  expect(await client.evaluate(marks, session)).toBe("");
  expect(await client.send("Extensions.getExtensions")).toEqual({ extensions: [] });
});

test("a start that fails leaves the directories, and the next one without what failed has the profile", async () => {
  const spec = launchSpec({ engine: "chromium" });
  const first = await start(spec);
  await open(first, "/login-for-now");
  const keptWorkspace = await leave(first);
  const broken = await writeBrokenExtension(keptWorkspace.directories.extensions, "broken");
  await expect(
    startAgain({ ...spec, fillWorkspace: async () => [broken] }, keptWorkspace),
  ).rejects.toMatchObject({ stage: "extensions" });
  expect(await takeCensus(host.scratchDirectory, new Set())).toEqual({
    ...nothing,
    directories: [basename(keptWorkspace.directories.root)],
  });
  const second = await startAgain(spec, keptWorkspace);
  const { client, session } = await open(second, "/");
  expect(await client.evaluate("document.title", session)).toBe("welcome back");
});

test("a start in directories that cannot be used any more leaves nothing but them", async () => {
  const spec = launchSpec();
  const keptWorkspace = await leave(await start(spec));
  const { temporary } = keptWorkspace.directories;
  rmSync(temporary, { recursive: true });
  symlinkSync("/var/tmp", temporary);
  await expect(startAgain(spec, keptWorkspace)).rejects.toThrow("is no directory any more");
  expect(await takeCensus(host.scratchDirectory, new Set())).toEqual({
    ...nothing,
    directories: [basename(keptWorkspace.directories.root)],
  });
});

test("a launch that is given up while its workspace is filled ends that before its directories go", async () => {
  const abort = new AbortController();
  let ended = false;
  const fillWorkspace: FilledSpec["fillWorkspace"] = async ({ directories, signal }) => {
    setImmediate(() => abort.abort());
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    await writeFile(join(directories.extensions, "late"), "");
    ended = true;
    return [];
  };
  await expect(
    launchChromium(launchSpec({ engine: "chromium", fillWorkspace }), host, { signal: abort.signal }),
  ).rejects.toMatchObject({ stage: "assets" });
  expect(ended).toBe(true);
});

test("a browser that is being left and is killed meanwhile keeps its directories", async () => {
  const first = await start(launchSpec({ engine: "headless-shell" }));
  const leaving = leave(first);
  await first.kill();
  const keptWorkspace = await leaving;
  expect(await readdir(keptWorkspace.directories.root)).toContain("profile");
});

test("a browser that has ended has nothing to leave", async () => {
  const first = await start(launchSpec({ engine: "headless-shell" }));
  await first.kill();
  await expect(first.stopAndKeep(limitMs)).rejects.toThrow("has ended");
});

test("what a browser puts in the place of our directories is not written through", async () => {
  const spec = launchSpec({ engine: "chromium", headless: false });
  const keptWorkspace = await leave(await start(spec));
  const { root, extensions, profile } = keptWorkspace.directories;
  const target = join(host.scratchDirectory, "target");
  mkdirSync(target);
  for (const path of [extensions, join(root, "policy"), join(profile, "Default", "Sessions")]) {
    rmSync(path, { recursive: true, force: true });
    symlinkSync(target, path);
  }
  const held = join(target, "held");
  writeFileSync(held, "held");
  rmSync(join(root, "xauthority"));
  symlinkSync(held, join(root, "xauthority"));
  rmSync(join(profile, "Local State"));
  symlinkSync("/etc/hostname", join(profile, "Local State"));
  const second = await startAgain(spec, keptWorkspace);
  expect(lstatSync(extensions).isDirectory()).toBe(true);
  expect(readdirSync(target)).toEqual(["held"]);
  expect(readFileSync(held, "utf8")).toBe("held");
  expect(statSync(held).uid).toBe(process.getuid?.());
  rmSync(target, { recursive: true });
  await second.kill();
});
