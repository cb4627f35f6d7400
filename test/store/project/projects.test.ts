import { expect, test } from "vitest";
import {
  findBrowserId,
  findBrowserIdIn,
  findPoolIdIn,
  newBrowserId,
  newPoolId,
  newProfileId,
  onDemandIn,
  partitionOf,
  type ProjectId,
  projectOf,
} from "../../../src/base/ids.js";
import { findPool, findSession } from "../../../src/pool/lookup.js";
import { RedisProjects } from "../../../src/store/project/projects.js";
import { onBoth } from "../../support/store/on-both.js";
import { candidateOn, claimOf, poolSpec, request, writeOf } from "../../support/store/store-bed.js";
import { controlA, nodeA } from "../../support/store/pool-bed.js";
import { defaultLimits } from "../../support/store/store-limits.js";
import { unsynced } from "../../support/store/unsynced.js";

const own = "default" as ProjectId;
const [blue, green] = ["blueblueblue" as ProjectId, "greengreenge" as ProjectId];

test("an id says which project it is of, and is one in no other", () => {
  for (const project of [own, blue, green]) {
    const pool = newPoolId(project);
    const browser = newBrowserId(partitionOf(pool));
    const onDemand = newBrowserId(onDemandIn(project));
    expect([
      projectOf(pool),
      projectOf(browser),
      projectOf(onDemand),
      projectOf(newProfileId(project)),
    ]).toEqual([project, project, project, project]);
    expect(findBrowserId(browser)).toBe(browser);
    for (const other of [own, blue, green]) {
      expect(findPoolIdIn(other, pool)).toBe(other === project ? pool : undefined);
      expect(findBrowserIdIn(other, onDemand)).toBe(other === project ? onDemand : undefined);
    }
  }
});

onBoth("projects", ({ bed }) => {
  const open = (): RedisProjects =>
    new RedisProjects(bed().store, {
      vaultWrites: unsynced,
      limits: defaultLimits,
      unnamed: bed().project,
      others: async () => [blue, green],
    });

  test("pools of one name live side by side, each found in its own project only", async () => {
    const { poolStore } = bed();
    const all = open();
    const pools = await Promise.all(
      [blue, green].map(async (project) => {
        const { projects } = all.of(project);
        const [id, partition] = [newPoolId(project), onDemandIn(project)];
        await projects.addPool(id);
        expect(
          await projects.reserveName({ kind: "pool", name: "herd", owner: id, partition: partitionOf(id) }),
        ).toMatchObject({ isNew: true });
        await poolStore.createPool(partitionOf(id), {
          id,
          write: writeOf(poolSpec({ name: "herd" })),
          request: request(),
        });
        await projects.openPool(id);
        return { id, partition, ports: { poolStore, projects } };
      }),
    );
    const [first, second] = pools;
    if (!first || !second) throw new Error("two pools were made");
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      expect((await findPool(one.ports, "herd"))?.id).toBe(one.id);
      expect((await findPool(one.ports, one.id))?.id).toBe(one.id);
      expect(await findPool(one.ports, other.id)).toBeUndefined();
    }
    expect(await findPool(bed(), "herd")).toBeUndefined();
    expect(await findPool(bed(), first.id)).toBeUndefined();
    expect(new Set(await all.partitions())).toEqual(
      new Set([
        ...(await bed().projects.partitions()),
        ...pools.flatMap(({ id, partition }) => [partitionOf(id), partition]),
      ]),
    );
  });

  test("a session is lent and named in its project, and its name is free there when it ends", async () => {
    const { poolStore } = bed();
    const all = open();
    const { projects } = all.of(blue);
    const partition = onDemandIn(blue);
    const lease = "leaseleaseleaseleaselea1" as Parameters<typeof poolStore.findHeld>[1];
    const id = request();
    await projects.reserveName({ kind: "session", name: "me", owner: lease, partition });
    const waiter = { id, lease, control: controlA, connection: id, name: "me", timeoutSeconds: 60 };
    const created = await poolStore.createSession(partition, {
      waiter,
      template: poolSpec(),
      candidate: candidateOn(partition, nodeA),
    });
    if (created.kind !== "claimed") throw new Error(`nothing was claimed: ${created.kind}`);
    await bed().reports.launched(created.browser.id, claimOf(created.browser), "{}");
    expect((await findSession({ poolStore, projects }, "me"))?.browser.id).toBe(created.browser.id);
    for (const elsewhere of [bed().projects, all.of(green).projects])
      for (const ref of ["me", created.browser.id])
        expect(await findSession({ poolStore, projects: elsewhere }, ref)).toBeUndefined();
    await projects.sweepNames();
    expect(await projects.findName("session", "me")).toBeDefined();
    await poolStore.release(partition, {
      browser: created.browser.id,
      reuse: false,
      why: "deleted",
      isRetry: false,
      request: request(),
    });
    await bed().effects.idle();
    expect(await all.at(partition).findName("session", "me")).toBeUndefined();
  });
});
