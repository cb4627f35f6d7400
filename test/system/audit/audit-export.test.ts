import { afterAll, beforeAll, expect, test } from "vitest";
import {
  askFor,
  deliveredLines,
  destinationsPath as path,
  makeDestination,
  openExportFleet,
  recordedPaths,
} from "../../support/audit/export-fleet.js";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";

let fleet: Awaited<ReturnType<typeof openExportFleet>>;
beforeAll(async () => {
  fleet = await openExportFleet();
});
afterAll(() => fleet.close());

const names = (run: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${run}-${index}`);

test("two controls deliver each object once; where one is killed over an upload the other goes on, and nothing is lost", async () => {
  const { cloud } = fleet;
  const controls = new Map([
    ["one", await fleet.startControl("one")],
    ["two", await fleet.startControl("two")],
  ]);
  const [first] = controls.values();
  if (!first) throw new Error("there are two");
  const kernel = kernelOf(first);
  const made = await makeDestination(first);
  const at = `${path}/${made.id}`;
  expect(await kernel.post(`${at}/test`)).toMatchObject({ success: false, stage: "assume_role" });
  cloud.roles.set(made.role_arn, { externalId: made.external_id });
  expect(await kernel.post(`${at}/test`)).toEqual({ success: true, stage: "complete" });
  cloud.puts.length = 0;

  // Killed after its upload has ended and before it hears so: the cursor is not moved.
  let endFlood = (): void => {};
  const flooded = new Promise<void>((resolve) => (endFlood = resolve));
  const killed = new Promise<string>((resolve, reject) => {
    cloud.aroundPuts(async ({ by }, put) => {
      cloud.aroundPuts((_put, other) => other());
      await flooded;
      await put();
      const daemon = controls.get(by);
      await daemon?.end("SIGKILL");
      if (daemon) resolve(by);
      else reject(new Error(`nobody knows the daemon ${by}`));
    });
  });
  await kernel.patch(at, { body: { status: "active" } });
  await Promise.all([...controls.values()].map((daemon, index) => askFor(daemon, names(`run${index}`, 30))));
  endFlood();
  controls.delete(await killed);
  const [survivor] = controls.values();
  if (!survivor) throw new Error("one is left");
  await askFor(survivor, names("run-after", 10));

  const paths = await until("the last on record", async () => {
    const all = await recordedPaths(survivor);
    return all.includes("/browser_pools/run-after-9") ? all : undefined;
  });
  const lines = await deliveredLines(cloud, paths);
  expect(new Set(lines.map(({ event_id: id }) => id)).size).toBe(lines.length);

  const twice = cloud.puts.filter(({ key }, index) => cloud.puts.findIndex((put) => put.key === key) < index);
  expect(twice.map(({ key }) => key)).toEqual([cloud.puts[0]?.key]);
  expect(twice[0]?.bytes).toEqual(cloud.puts[0]?.bytes);
  expect(twice[0]?.by).not.toBe(cloud.puts[0]?.by);
  expect(cloud.faults).toEqual([]);
  expect(await kernelOf(survivor).get(at)).toMatchObject({ status: "active", consecutive_failures: 0 });
  const metrics = (await survivor.call("GET /metrics")).text;
  expect(metrics).toMatch(new RegExp(`remuda_audit_export_lag_seconds{destination="${made.id}"} \\d`));
  expect(metrics).toMatch(/remuda_audit_export_entries_total [1-9]/);

  // One that stops does not wait for an upload that hangs.
  const hanging = new Promise<void>((resolve) => {
    cloud.aroundPuts(async () => {
      resolve();
      await new Promise(() => {});
    });
  });
  await askFor(survivor, names("run-last", 1));
  await hanging;
  expect((await survivor.end("SIGTERM")).code).toBe(0);
}, 300_000);

const kernelOf = (daemon: DaemonProcess) => daemon.kernel({ maxRetries: 0 });
