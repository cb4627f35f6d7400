import { expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { type FleetNetwork, type Machine, openFleetNetwork } from "./network.js";
import { onSmallDisk } from "../../support/faults/small-disk.js";

/** A daemon and its part of the network. */
export interface Member {
  daemon: DaemonProcess;
  readonly machine: Machine;
}
/** A lease with a socket, and the node of its browser. */
export interface HeldLease extends Lease {
  readonly node: string;
  readonly client: RawCdp;
}

interface FleetOptions {
  /** Settings of every daemon. */
  readonly file?: Readonly<Record<string, object>>;
  /** Nodes whose data are on a disk of their own, with its size in MiB. */
  readonly disks?: Readonly<Record<string, number>>;
}

/** Browsers of the pool; two nodes of the three have room for all of them. */
export const size = 6;
const room = { max_browsers: 4 };
/** URLs lead to nodes themselves: a socket ends with its node, and not with a control. */
const direct = { hand_out_own_address: true };

/** Two controls, three nodes and a Redis, each on a machine of its own, and a pool over the nodes. */
export class FaultFleet {
  readonly controls: Member[] = [];
  readonly nodes = new Map<string, Member>();
  readonly held: HeldLease[] = [];
  readonly #gone = new Set<DaemonProcess>();

  private constructor(
    readonly network: FleetNetwork,
    private readonly fake: FakeChromium,
    private readonly options: FleetOptions,
  ) {}

  static async open(openNetwork = openFleetNetwork, options: FleetOptions = {}): Promise<FaultFleet> {
    const fleet = new FaultFleet(await openNetwork(), await makeFakeChromium(), options);
    for (let count = 0; count < 2; count += 1)
      fleet.controls.push(await fleet.#start("control", { node: direct }));
    for (const id of ["a", "b", "c"]) {
      const file = { drain: { limit_seconds: 0 }, node: { ...room, ...direct, id } };
      const started = fleet.#start("node", { ...standIn(fleet.fake), ...file }, options.disks?.[id]);
      fleet.nodes.set(id, await started);
    }
    await fleet.control.makePool({ name: "herd", size, timeout_seconds: 600 });
    return fleet;
  }

  /** A control that lives. */
  get control(): DaemonProcess {
    const living = this.controls.find(({ daemon }) => !this.#gone.has(daemon));
    if (!living) throw new Error("no control lives");
    return living.daemon;
  }

  node(id: string): Member {
    const member = this.nodes.get(id);
    if (!member) throw new Error(`there is no node ${id}`);
    return member;
  }

  /** Holds leases until there is one on each node. */
  async hold(): Promise<void> {
    while (new Set(this.held.map(({ node }) => node)).size < this.nodes.size) {
      const lease = await this.acquire();
      if (!lease) throw new Error("nothing is lent");
      const browsers = await this.control.browsersOf("herd");
      const node = browsers.find(({ session_id: id }) => id === lease.session_id)?.node ?? "";
      this.held.push({ ...lease, node, client: await connectRaw(lease.cdp_ws_url) });
    }
  }

  async acquire(): Promise<Lease | undefined> {
    const got = await this.control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 1 });
    return got.status === 200 ? (got.body as Lease) : undefined;
  }

  /** Lends a browser and gives it back, as callers do who are not held up by the fault any more. */
  async isLending(): Promise<boolean> {
    try {
      const lease = await this.acquire();
      if (!lease) return false;
      const { session_id } = lease;
      return (await this.control.call("POST /browser_pools/herd/release", { session_id })).status === 204;
    } catch {
      // A control that cannot be reached lends nothing.
      return false;
    }
  }

  async kill(member: Member): Promise<void> {
    this.#gone.add(member.daemon);
    await member.daemon.end("SIGKILL");
  }

  /** A killed daemon again, on its machine and in its place. */
  async again(member: Member): Promise<void> {
    const { place } = member.daemon;
    member.daemon = await spawnDaemon(place, member.machine.through);
  }

  /**
   * What may never happen has not: every held lease but those of `lost` nodes lives with its socket, those
   * are over for good, and the pool has as many browsers as it is to have, none of them twice.
   */
  async expectSound(lost: readonly string[] = []): Promise<void> {
    const [over, living] = [
      this.held.filter(({ node }) => lost.includes(node)),
      this.held.filter(({ node }) => !lost.includes(node)),
    ];
    for (const { session_id: id } of over)
      await until(
        "its lease over",
        async () => (await this.control.call(`GET /browsers/${id}`)).status === 404,
      );
    for (const { client } of over) await client.closed;
    for (const { session_id: id, lease_id: lease, client } of living) {
      const seen = await this.control.call(`GET /browsers/${id}`);
      expect(seen).toMatchObject({ status: 200, body: { lease_id: lease } });
      expect((await client.send("Browser.getVersion")).result).toBeDefined();
    }
    await this.#expectCounts(living);
  }

  async #expectCounts(living: readonly HeldLease[]): Promise<void> {
    const idle = size - living.length;
    await this.control.poolWhen(
      "herd",
      (pool) => pool.available_count === idle && pool.acquired_count === living.length,
    );
    const browsers = await this.control.browsersOf("herd");
    const ids = browsers.map(({ session_id: id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const leased = browsers.filter(({ state }) => state === "leased").map(({ session_id: id }) => id);
    expect(leased.toSorted()).toEqual(living.map(({ session_id: id }) => id).toSorted());
    // Whoever comes now gets others than those.
    const lent: Lease[] = [];
    for (let lease = await this.acquire(); lease && lent.length < idle; lease = await this.acquire())
      lent.push(lease);
    for (const { session_id: id } of lent) {
      expect(leased).not.toContain(id);
      await this.control.call("POST /browser_pools/herd/release", { session_id: id });
    }
    await this.control.poolWhen("herd", (pool) => pool.available_count === idle);
  }

  /** Stops what runs, nodes first, and looks that nothing is left of anything. */
  async close(): Promise<void> {
    for (const { client } of this.held) await client.close();
    for (const { daemon } of [...this.nodes.values(), ...this.controls]) {
      if (this.#gone.has(daemon)) daemon.place.remove();
      else await daemon.stop();
    }
    await this.network.close();
    await this.fake.remove();
  }

  async #start(
    role: "control" | "node",
    file: Readonly<Record<string, object>>,
    mebibytes?: number,
  ): Promise<Member> {
    const machine = await this.network.join();
    const { server, node } = machine.settings;
    const place = new DaemonPlace({
      role,
      redisUrl: machine.redisUrl,
      ...(machine.port !== undefined && { port: machine.port }),
      file: { ...this.options.file, ...file, server, node: { ...file["node"], ...node } },
    });
    const disk = mebibytes === undefined ? [] : onSmallDisk(place.dataDir, mebibytes);
    return { machine, daemon: await spawnDaemon(place, [...machine.through, ...disk]) };
  }
}
