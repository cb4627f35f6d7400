import { Readable } from "node:stream";
import { expect, test } from "vitest";
import type { ProfileId } from "../../src/base/ids.js";
import { directoriesOf } from "../../src/browser/directories.js";
import { newBrowserId, onDemandPartition } from "../../src/base/ids.js";
import { BrowserAssets, type BrowserAssetPorts } from "../../src/node/browser-assets.js";
import { silentLog } from "../support/browser/chromium-host.js";

const profile = "0".repeat(24) as ProfileId;
const never = async (): Promise<never> => {
  throw new Error("is not asked for");
};
const room = (signal: AbortSignal) => ({
  directories: directoriesOf("/nowhere", newBrowserId(onDemandPartition)),
  uid: null,
  signal,
});

function assetsFrom(over: Pick<BrowserAssetPorts, "archives" | "unpackProfile">): BrowserAssets {
  return new BrowserAssets({
    extensions: { find: never, noteUse: never },
    profiles: { find: async () => ({ id: profile, createdAt: 0 }) as never, noteUse: async () => {} },
    cache: { take: never },
    unpackExtension: never,
    log: silentLog,
    ...over,
  });
}

test("a launch that is given up while a profile's archive is opened lets go of the archive", async () => {
  const given = new AbortController();
  const tar = new Readable({ read() {} });
  const open = async (): Promise<Readable> => {
    given.abort(new Error("given up"));
    return tar;
  };
  await expect(
    assetsFrom({ archives: { open }, unpackProfile: never }).profile(profile, room(given.signal)),
  ).rejects.toThrow("given up");
  expect(tar.destroyed).toBe(true);
});

test("an archive that cannot be unpacked is let go of", async () => {
  const tar = new Readable({ read() {} });
  const assets = assetsFrom({ archives: { open: async () => tar }, unpackProfile: never });
  await expect(assets.profile(profile, room(new AbortController().signal))).rejects.toThrow(
    "is not asked for",
  );
  expect(tar.destroyed).toBe(true);
});
