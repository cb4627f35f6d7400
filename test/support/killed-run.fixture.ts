import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { test } from "vitest";
import { openPlain } from "../proof/egress/plain.js";
import { startDaemon } from "./daemon/daemon.js";
import { spawnDaemon } from "./daemon/daemon-process.js";
import { DaemonPlace } from "./daemon/daemon-settings.js";
import { startRedis } from "./store/redis.js";

/** A process and all that it has started, directly or not. */
function family(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return [pid, ...children.flatMap((child) => family(Number(child)))];
}

test("starts what tests start, tells the processes, and stays", async () => {
  await startRedis();
  const daemons = [await startDaemon(), await spawnDaemon(new DaemonPlace({}))];
  for (const daemon of daemons) await daemon.makePool({ name: "kept" });
  const plain = await openPlain();
  await plain.open("listed");
  const started = {
    pids: family(process.pid),
    scratchDirectories: daemons.map(({ place }) => place.scratchDirectory),
  };
  await writeFile(process.env["REMUDA_STARTED"] ?? "", JSON.stringify(started));
  await new Promise(() => {});
}, 600_000);
