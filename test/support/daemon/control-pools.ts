import type { BrowserId } from "../../../src/base/ids.js";
import { makeFill } from "../../../src/pool/fill.js";
import type { Session } from "../../../src/pool/session.js";
import type { AcquireBody, SessionCreate, SessionPatch } from "../../../src/spec/bodies.js";
import type { PoolSpec } from "../../../src/spec/launch-template.js";
import { until } from "../browser/chromium-until.js";
import { type Held, nodeA, PoolBed } from "../store/pool-bed.js";
import { claimOf } from "../store/store-bed.js";
import { callerOf, type ControlBed } from "./control-bed.js";
import { nodeFacts } from "../store/node-facts.js";

/** The node on which the browsers of these pools are. */
export const beatOfNode = (control: ControlBed): Promise<unknown> =>
  control.bed.nodes.beat(nodeFacts(nodeA, { maxBrowsers: 20 }));

/** Fills a pool as the daemon does, and says that all has been launched. */
export async function launchAll(
  control: ControlBed,
  pool: Pick<PoolBed, "partition" | "browsers">,
): Promise<void> {
  const { poolStore, nodes, reports } = control.bed;
  await makeFill({
    poolStore,
    nodes,
    jobs: { add: async () => {} },
    random: () => 0,
    recycle: { maxAgeMs: null, jitterRatio: 0 },
  })(pool.partition);
  for (const browser of await pool.browsers())
    if (browser.state === "launching") await reports.launched(browser.id, claimOf(browser), "{}");
}

/** A pool that the project knows, and filled. */
export async function filledPool(control: ControlBed, spec: Partial<PoolSpec>): Promise<PoolBed> {
  const { bed } = control;
  const pool = await PoolBed.create(bed, spec);
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  await beatOfNode(control);
  await launchAll(control, pool);
  return pool;
}

/** A session of a pool that has an idle browser. */
export async function acquireFrom(
  control: ControlBed,
  pool: PoolBed,
  body: AcquireBody = {},
): Promise<Session> {
  const lent = await control.acquire(pool.id, body, callerOf());
  if (lent.kind !== "granted") throw new Error(`not granted: ${lent.kind}`);
  return lent.session;
}

export async function lendFrom(control: ControlBed, pool: PoolBed, body: AcquireBody = {}): Promise<Held> {
  const { browser } = await acquireFrom(control, pool, body);
  if (!browser.lease) throw new Error("granted without a lease");
  return { browser, id: browser.id, lease: browser.lease.id };
}

/** A session as a PATCH has changed it. */
export async function patchSession(control: ControlBed, ref: string, patch: SessionPatch): Promise<Session> {
  const outcome = await control.updateSession(ref, patch, callerOf());
  if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
  return outcome.value;
}

/** A session on demand, of a browser that no node has launched. */
export async function createSession(control: ControlBed, body: SessionCreate): Promise<Session> {
  const known = control.bed.jobs.length;
  const outcome = control.createSession({ headless: true, ...body }, callerOf());
  await until("the launch", () => control.bed.jobs.length > known);
  const job = control.bed.jobs.at(-1);
  if (job) await control.bed.reports.launched(job.browser, job.claim, "{}");
  const lent = await outcome;
  if (lent.kind !== "granted") throw new Error(JSON.stringify(lent));
  return lent.session;
}

/** Reports as a node does that has saved the profile and ended the browser. */
export async function reportGone(control: ControlBed, id: BrowserId): Promise<void> {
  const found = await control.bed.poolStore.findBrowser(id);
  if (found) await control.bed.reports.gone(id, claimOf(found.browser));
}
