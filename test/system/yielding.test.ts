import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { takeCensus } from "../support/browser/chromium-census.js";
import { until } from "../support/browser/chromium-until.js";
import { redisPidIn } from "../support/daemon/said.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";

const limitMs = 60_000;
const isRoot = process.getuid?.() === 0;

/** Undefined where the process or the cgroup has ended. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

const cpuGroupOf = (pid: number): string | undefined => {
  const memberships = readIfThere(`/proc/${pid}/cgroup`);
  if (memberships === undefined) return undefined;
  const below = /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m.exec(memberships)?.[1];
  return below === undefined
    ? `/sys/fs/cgroup${/^0::(.*)$/m.exec(memberships)?.[1]}`
    : `/sys/fs/cgroup/cpu${below}`;
};

function ownGroupOf({ pid }: DaemonProcess): string {
  const found = cpuGroupOf(pid);
  if (found === undefined) throw new Error("the daemon has ended");
  return found;
}

/** The cgroups of the daemon's browsers, by whether they stand behind. */
async function standing(daemon: DaemonProcess): Promise<readonly boolean[]> {
  const { processes } = await takeCensus(daemon.place.scratchDirectory, new Set());
  const places = new Set(
    processes
      .map((line) => Number(line.split(" ")[0]))
      .map(cpuGroupOf)
      .filter((path) => path !== undefined),
  );
  const own = ownGroupOf(daemon);
  return [...places]
    .filter((path) => dirname(path) === dirname(own) && path !== own)
    .map((path) => readIfThere(join(path, "cpu.idle")))
    .filter((text) => text !== undefined)
    .map((text) => text.trim() === "1");
}
const countBehind = async (daemon: DaemonProcess): Promise<number> =>
  (await standing(daemon)).filter(Boolean).length;

async function openBusy(daemon: DaemonProcess): Promise<{ client: RawCdp; page: string }> {
  const { body } = await daemon.call("POST /browsers", { headless: true, engine: "headless-shell" });
  expect(body.isolation?.limits).toMatchObject({ busy: "idle" });
  const client = await connectRaw(body.cdp_ws_url);
  const page = await client.attach();
  await client.evaluate(
    `globalThis.busy = new Worker(URL.createObjectURL(new Blob(["for (;;);"]))); 1`,
    page,
  );
  return { client, page };
}

test.runIf(isRoot)(
  "a busy browser stands behind its calm neighbour, and comes back; the same after the daemon was killed",
  async () => {
    const start = (place: DaemonPlace): Promise<DaemonProcess> => spawnDaemon(place);
    const first = await start(new DaemonPlace({ file: { browser: { busy_cpu_percent: 5 } } }));
    await first.call("POST /browsers", { headless: true, engine: "headless-shell" });
    const { client, page } = await openBusy(first);
    await until(
      "one of two behind",
      async () => (await countBehind(first)) === 1 && (await standing(first)).length === 2,
      limitMs,
    );
    await client.evaluate("busy.terminate(); 1", page);
    await until("none behind", async () => (await countBehind(first)) === 0, limitMs);
    await openBusy(first);
    await until("one behind again", async () => (await countBehind(first)) === 1, limitMs);
    await first.end("SIGKILL");

    const second = await start(first.place);
    await openBusy(second);
    await until("one behind the next daemon", async () => (await countBehind(second)) === 1, limitMs);
    const top = dirname(ownGroupOf(second));
    await second.stop(first.log);
    expect(existsSync(top)).toBe(false);
  },
);

const sliceOf = (pid: number): string | undefined =>
  /^se\.slice\s*:\s*(\d+)$/m.exec(readIfThere(`/proc/${pid}/sched`) ?? "")?.[1];

// Linux says it from 6.12 on, and where it was built with CONFIG_SCHED_DEBUG.
test.runIf(sliceOf(process.pid) !== undefined)(
  "the daemon, its Redis and its browsers have short time slices",
  async () => {
    const daemon = await spawnDaemon(new DaemonPlace({}));
    await daemon.call("POST /browsers", { headless: true, engine: "headless-shell" });
    const { processes } = await takeCensus(daemon.place.scratchDirectory, new Set());
    const pids = [daemon.pid, redisPidIn(daemon.log), ...processes.map((line) => Number(line.split(" ")[0]))];
    // One may have ended since.
    const slices = pids.map(sliceOf).filter((slice) => slice !== undefined);
    expect(slices.length).toBeGreaterThan(4);
    expect(new Set(slices)).toEqual(new Set(["200000"]));
    await daemon.stop();
  },
);
