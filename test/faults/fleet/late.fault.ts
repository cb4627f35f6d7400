import { spawnSync } from "node:child_process";
import { expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { FaultFleet } from "./fault-fleet.js";
import { openFleetNetwork } from "./network.js";
import { openProxiedNetwork } from "./proxied-network.js";

/** Whether this machine grants namespaces, and its kernel has what delays packets. */
const canDelay = (): boolean =>
  spawnSync("unshare", ["--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"])
    .status === 0;

fault(
  "everything that two nodes and a control send is late by 50 ms",
  async (tell) => {
    const fleet = await FaultFleet.open(canDelay() ? openFleetNetwork : openProxiedNetwork);
    onTestFinished(() => fleet.close());
    await fleet.hold();
    const late = [fleet.node("a"), fleet.node("b"), ...fleet.controls.slice(0, 1)];
    for (const { machine } of late) await machine.delay(50);
    const watch = startWatch();
    await until("a lease", () => fleet.isLending());
    const lendsMs = watch.since();
    await fleet.expectSound();
    for (const { daemon } of fleet.controls) expect(daemon.log).not.toContain("node lost");
    for (const { machine } of late) await machine.delay(0);
    tell({ saw: `an acquire and its release took ${Math.round(lendsMs)} ms; ${fleet.network.kind}` });
  },
  240_000,
);
