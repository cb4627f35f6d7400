import { spawn } from "node:child_process";
import { afterEach, beforeEach, describe, expect, onTestFinished } from "vitest";
import { bound } from "../../support/bound.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { FaultFleet, type Member } from "./fault-fleet.js";
import { openSentinelNetwork, type SentinelNetwork } from "./sentinel-network.js";
import { canHaveNamespaces } from "./switch.js";

/** Lends and opens what it is given until nothing is idle, and says what becomes of it. */
const caller = `
import { WebSocket } from "ws";
const [, url, key] = process.argv;
const headers = { authorization: "Bearer " + key, "content-type": "application/json" };
const asked = { method: "POST", headers, body: '{"acquire_timeout_seconds":1}' };
const say = (word) => console.log(JSON.stringify(word));
for (let status = 0; status !== 204;) {
  const reply = await fetch(url + "/browser_pools/herd/acquire", asked).catch(() => undefined);
  status = reply?.status ?? 0;
  if (status !== 200) continue;
  const lease = await reply.json();
  say({ is: "lent", lease });
  const socket = new WebSocket(lease.cdp_ws_url);
  socket.on("error", () => {});
  socket.on("open", () => say({ is: "open", lease }));
  socket.on("close", (code) => say({ is: "closed", lease, code }));
}
say({ is: "done" });
`;

interface Word {
  readonly is: "lent" | "open" | "closed" | "done";
  readonly lease: Lease;
}

/** Callers on the side of a control: what they have said so far. */
function startCallers({ daemon, machine }: Member): { said(is: Word["is"]): readonly Word[] } {
  const command = bound(process.execPath, "--input-type=module", "-e", caller, daemon.url, daemon.apiKey);
  const [program = "", ...args] = [...machine.through, ...command];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  const words = (): readonly Word[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Word);
  return { said: (is) => words().filter((word) => word.is === is) };
}

let network: SentinelNetwork;
let fleet: FaultFleet;
const limitMs = 240_000;

describe.runIf(canHaveNamespaces())("where networks can be parted", () => {
  beforeEach(async () => {
    network = await openSentinelNetwork();
    fleet = await FaultFleet.open(async () => network);
    await fleet.hold();
    await keepOne("c");
  });
  afterEach(() => fleet.close());

  fault(
    "the network is parted: the primary, a control and a node go on by themselves, and are joined again",
    async (tell) => {
      const [, far] = fleet.controls;
      if (!far) throw new Error("there is no second control");
      await network.caughtUp();
      move("other", far);
      const watch = startWatch();
      const callers = startCallers(far);
      await until("a lease on the other side", () => callers.said("open").length > 0);
      await until("nothing idle on the other side", () => callers.said("done").length > 0);
      // Here the replica has taken over, and what was on the other side's node is replaced.
      const living = fleet.held.filter(({ node }) => node !== "c").length;
      await fleet.control.poolWhen(
        "herd",
        (pool) => pool.acquired_count === living && pool.available_count > 0,
      );
      await until("a lease", () => fleet.isLending());
      const lendsMs = watch.since();
      move("this", far);
      const joined = startWatch();
      await network.follows(network.primary);
      await fleet.expectSound(["c"]);
      await until(
        "each socket of the other side closed",
        () => callers.said("closed").length === callers.said("lent").length,
      );
      for (const { lease } of callers.said("lent"))
        expect((await refusedUpgrade(lease.cdp_ws_url)).status).toBe(410);
      tell({
        saw: `${callers.said("lent").length} leases of the other side over, ${callers.said("open").length} of them in use; here lent again after ${(lendsMs / 1000).toFixed(1)} s; ${network.kind}`,
        recoveryMs: joined.since(),
      });
    },
    limitMs,
  );
});

/** One lease is held of a node, and the other browsers that it has are idle. */
async function keepOne(node: string): Promise<void> {
  const [, ...others] = fleet.held.filter((lease) => lease.node === node);
  for (const lease of others) {
    const { session_id } = lease;
    await fleet.control.call("POST /browser_pools/herd/release", { session_id });
    await lease.client.closed;
    fleet.held.splice(fleet.held.indexOf(lease), 1);
  }
}

function move(side: "this" | "other", { machine }: Member): void {
  network.movePrimary(side);
  machine.move?.(side);
  fleet.node("c").machine.move?.(side);
}
