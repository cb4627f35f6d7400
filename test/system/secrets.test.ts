import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";

/** A browser's, or anybody's. */
const stranger = ["setpriv", "--reuid", "200000", "--regid", "200000", "--clear-groups", "--"];
const readable = (directory: string, as: readonly string[] = []): string[] => {
  const [program = "", ...args] = [
    ...as,
    "find",
    directory,
    "-mindepth",
    "1",
    "(",
    "-readable",
    "-o",
    "-writable",
    ")",
    "-not",
    "-type",
    "l",
  ];
  return spawnSync(program, args, { encoding: "utf8" })
    .stdout.split("\n")
    .filter((line) => line !== "");
};

test.runIf(process.getuid?.() === 0)(
  "nothing that a daemon keeps can be read by another user, also where its directory was open before",
  async () => {
    const place = new DaemonPlace({ drawsKeys: true });
    // Open on the way, and left open by whoever made them.
    chmodSync(place.directory, 0o755);
    mkdirSync(join(place.dataDir, "archives"), { recursive: true });
    writeFileSync(join(place.dataDir, "encryption-key"), "a key that was given by hand and left open\n");
    for (const path of [
      place.dataDir,
      join(place.dataDir, "archives"),
      join(place.dataDir, "encryption-key"),
    ])
      chmodSync(path, 0o777);
    expect(readable(place.dataDir, stranger)).not.toEqual([]);
    const daemon = await spawnDaemon(place);
    await daemon.call("POST /profiles", { name: "kept" });
    await daemon.makePool({ name: "one" });
    const kept = readable(place.dataDir);
    for (const name of [
      "api-key",
      "cluster-secret",
      "encryption-key",
      "redis/redis.sock",
      "redis/appendonlydir",
    ])
      expect(kept).toContain(join(place.dataDir, name));
    expect(readable(place.dataDir, stranger)).toEqual([]);
    await until("that it is told", () => daemon.log.includes("data directory closed to other users"));
    await daemon.stop();
  },
);
