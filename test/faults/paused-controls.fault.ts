import { expect } from "vitest";
import { until } from "../support/chromium-until.js";
import type { DaemonProcess } from "../support/daemon-process.js";
import type { Lease } from "../support/daemon.js";
import { useFaultBed } from "./bed.js";
import { fault, startWatch } from "./fault.js";

const bed = useFaultBed();

/** The defaults of all that decides about silent controls. */
const usual = { acquire: { control_beat_period_ms: 1000, control_lost_after_ms: 5000, provisional_seconds: 30, max_wait_seconds: 200 } };
const pauseMs = 13_000;
const patientSeconds = 200;
const briefSeconds = 20;

interface Answer {
  readonly who: string;
  readonly status: number;
  readonly lease: Lease;
  readonly waitedMs: number;
}

async function ask(at: DaemonProcess, who: string, seconds: number): Promise<Answer> {
  const watch = startWatch();
  const { status, body } = await at.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: seconds });
  return { who, status, lease: body as Lease, waitedMs: watch.since() };
}

const inLine = (at: DaemonProcess, count: number): Promise<unknown> => at.poolWhen("herd", (pool) => pool.waiting_count === count);

/** Stands still for so long: what is done meanwhile is part of it. */
async function paused(control: DaemonProcess, meanwhile: () => Promise<void>): Promise<void> {
  const watch = startWatch();
  control.signal("SIGSTOP");
  await meanwhile();
  await until("the end of the pause", () => watch.since() >= pauseMs, pauseMs * 2);
  control.signal("SIGCONT");
}

fault("two controls stand still in turn (SIGSTOP, 13 s each), and callers wait at both", async (tell) => {
  const [one, two] = [await bed.start("control", usual), await bed.start("control", usual)];
  await bed.start("node", usual);
  await one.makePool({ name: "herd", size: 1 });
  let holder = await ask(one, "holder", 0);
  const served: string[] = [];
  const answers: Promise<Answer>[] = [];
  const enter = async (at: DaemonProcess, who: string, seconds: number): Promise<void> => {
    answers.push(ask(at, who, seconds).then((answer) => (answer.status === 200 ? take(answer) : answer)));
    await inLine(one, answers.length);
  };
  const take = (answer: Answer): Answer => {
    // One browser, and its last holder has given it back: two leases at once would show here.
    expect(served).toHaveLength(released);
    served.push(answer.who);
    holder = answer;
    return answer;
  };
  let released = 0;
  const handOn = async (at: DaemonProcess): Promise<void> => {
    const before = served.length;
    expect((await at.call("POST /browser_pools/herd/release", { session_id: holder.lease.session_id, lease_id: holder.lease.lease_id })).status).toBe(204);
    released += 1;
    await until("the next holder", () => served.length > before, 20_000);
  };
  for (const [at, who] of [[one, "1"], [two, "2"], [one, "3"], [two, "4"], [one, "5"], [two, "6"]] as const) await enter(at, who, patientSeconds);
  await paused(one, async () => {
    // 1, 3 and 5 are passed over while nobody hears of their control.
    await inLine(two, 3);
    await handOn(two);
  });
  const watch = startWatch();
  await inLine(two, 5);
  const recoveryMs = watch.since();
  await handOn(one);
  await paused(two, async () => {
    await inLine(one, 2);
    await handOn(one);
  });
  await inLine(one, 3);
  for (const at of [two, one, two]) await handOn(at);
  await Promise.all(answers.splice(0));
  expect(served).toEqual(["2", "1", "3", "4", "5", "6"]);
  await enter(one, "brief at one", briefSeconds);
  await enter(two, "brief at two", briefSeconds);
  const brief = [...answers];
  await paused(one, async () => void (await brief[1]));
  const unserved = await Promise.all(brief);
  expect(unserved.map(({ status }) => status)).toEqual([204, 204]);
  const waits = unserved.map(({ waitedMs }) => (waitedMs / 1000).toFixed(1));
  expect((await one.call("GET /browser_pools/herd")).body).toMatchObject({ waiting_count: 0, acquired_count: 1 });
  tell({ saw: `everybody served once, in their order but for who waited at the control that stood still; waits of ${briefSeconds} s took ${waits.join(" and ")} s`, recoveryMs });
}, 240_000);
