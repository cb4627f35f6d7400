import { firstProject } from "../../access/project.js";
import { rootPrincipal } from "../../access/principal.js";
import { defaultProject, isOnDemand, newRequestId, type Partition } from "../../base/ids.js";
import { textOf } from "../../base/log.js";
import { openWhole, Stops } from "../../base/stops.js";
import type { RequestInterceptor } from "../../http/request-interceptor.js";
import { declarePools } from "../../pool/declared-pools.js";
import { type FillPool, makeFill, makeFillSoon } from "../../pool/fill.js";
import type { PoolOperations } from "../../pool/operations.js";
import type { SilentNodes } from "../../pool/silent-nodes.js";
import { makeFillStandby } from "../../pool/standby/fill-standby.js";
import { type StandbyShape, standbyShapes } from "../../pool/standby/shapes.js";
import { listenAsControl } from "../../store/messages.js";
import { openAudit } from "./audit.js";
import { browsersElsewhere, openGateway, openSilentNodes } from "../gateway.js";
import { rootPersonOf } from "./access.js";
import { listenForPeople } from "./form.js";
import { interceptorOf, listenAsApi } from "./http.js";
import { openLending } from "./lending.js";
import { defaultsOf, makeOperationsIn } from "./operations.js";
import { isActiveOf } from "./project-registries.js";
import type { DaemonParts } from "../parts.js";
import { countVaultsAtStart, rewrapAtStart } from "../vault-keys.js";
import { makeRole, take } from "../shared.js";
import { startSchedules } from "./schedules.js";
import type { Stores } from "../stores.js";

/** HTTP and schedules; every client of a browser is sent on to its node. */
export const controlRole = makeRole(async (shared, stops) => {
  const { stores, url, log } = shared;
  const silentNodes = openSilentNodes(shared);
  const gateway = openGateway(shared, {
    local: browsersElsewhere,
    unreachable: silentNodes.suspect.bind(silentNodes),
  });
  stops.add("gateway", () => gateway.close());
  const control = take(
    stops,
    "control",
    await openControl(shared, { silentNodes, interceptor: interceptorOf(gateway) }),
  );
  // It stops before the API's server, which waits for no client's socket.
  stops.add("gateway", () => gateway.close());
  stops.add("waiting callers", control.dismiss);
  url.set(control.port);
  await stores.contact();
  await control.begin();
  log.info({ url: url.of() }, "listening");
});

interface ControlParts {
  readonly silentNodes: SilentNodes;
  readonly interceptor: RequestInterceptor;
  /** Why the node in this process cannot serve, if there is one. */
  unready?(): string | undefined;
}

interface Control {
  readonly port: number;
  readonly pools: PoolOperations;
  readonly stops: Stops;
  /** Declares the configuration's pools, starts the schedules. */
  begin(): Promise<void>;
  /** Answers who waits, and whoever comes to wait; to be done before anything else stops. */
  dismiss(): void;
}

/** A control: listens when it is opened, and works once it is begun. */
export async function openControl(shared: DaemonParts, parts: ControlParts): Promise<Control> {
  const stops = new Stops(shared.clock, shared.config.stop.stepMs);
  return await openWhole(stops, () => openParts(shared, parts, stops));
}

async function openParts(shared: DaemonParts, parts: ControlParts, stops: Stops): Promise<Control> {
  const { config, log, stores, endpoints } = shared;
  const lending = openLending(shared, parts.silentNodes, stops);
  const shapes = standbyShapes(config.standby, defaultsOf(config));
  const fill = makeFillAny(shared, shapes);
  const fillSoon = makeFillSoon(fill, (partition, error) =>
    log.warn({ partition, error: textOf(error) }, "fill left to the tick"),
  );
  const operationsIn = makeOperationsIn(shared, { lending, fillSoon, shapes });
  const { pools } = operationsIn(defaultProject);
  const audit = openAudit(shared, stops);
  const listening = await listenAsApi(shared, { ...parts, ...audit.operations, operationsIn }, stops);
  const { port } = listening;
  await endpoints.add({ host: config.server.host, port });
  await listenForPeople(shared, audit.operations.audit, stops);

  const begin = async (): Promise<void> => {
    stops.add("fills out of turn", fillWhereLacking(stores, { fillSoon, shapes }));
    stops.add("silent nodes", parts.silentNodes.begin());
    stops.add("leases that nobody used", suspectUnused(stores, parts.silentNodes));
    const listener = await listenAsControl(stores.listenerParts, lending.control, lending);
    stops.add("messages", () => listener.close());
    const declare = (): Promise<void> => declareFile(shared, pools);
    await declare();
    stops.add("declared again", declareAgain(shared, declare));
    const more = [audit.seal, await audit.startExports(stops)];
    void rewrapAtStart(shared);
    void countVaultsAtStart(shared);
    await startSchedules(shared, { control: lending.control, fill, more }, stops);
  };
  const dismiss = (): void => {
    listening.drain();
    lending.waiters.close();
  };
  return { port, pools, stops, begin, dismiss };
}

/** Fills pools, and keeps what stands by for sessions on demand. */
function makeFillAny(shared: DaemonParts, shapes: readonly StandbyShape[]): FillPool {
  const { config, stores } = shared;
  const { poolStore, nodes, queues: jobs, standby } = stores;
  const fillPool = makeFill({ poolStore, nodes, jobs, random: Math.random, recycle: config.recycle });
  const fillStandby = makeFillStandby({
    standby,
    nodes,
    jobs,
    shapes,
    maxAgeMs: config.recycle.maxAgeMs,
    isActive: (project) => isActiveOf(shared, project)(),
  });
  return (partition, fleet) => (isOnDemand(partition) ? fillStandby(partition) : fillPool(partition, fleet));
}

/** What the configuration says that there is. */
async function declareFile({ config, log, stores }: DaemonParts, pools: PoolOperations): Promise<void> {
  if (config.projects.enabled) await stores.directory.create({ ...firstProject, most: 1 });
  const refs = stores.projects.of(defaultProject);
  const defaults = defaultsOf(config);
  const principal = rootPrincipal(rootPersonOf(config));
  await declarePools(config.pools, { pools, ...refs, log, defaults, principal, request: newRequestId });
}

/** A node is asked whether it is there where nothing that was lent of it was used. */
const suspectUnused = ({ signals }: Stores, silentNodes: SilentNodes): (() => void) =>
  signals.on("lease.ended", ({ node, hadClient }) => {
    if (!hadClient) silentNodes.suspectUnused(node);
  });

/**
 * What runs in this process need not wait for a tick: a browser is replaced as soon as it is over, or as
 * there is room.
 */
function fillWhereLacking(
  { signals }: Stores,
  { fillSoon, shapes }: { fillSoon(partition: Partition): void; readonly shapes: readonly StandbyShape[] },
): () => void {
  const replace = ({ partition }: { partition: Partition }): void => {
    if (!isOnDemand(partition) || shapes.length > 0) fillSoon(partition);
  };
  const ends = [signals.on("browser.retiring", replace), signals.on("browser.gone", replace)];
  return () => ends.forEach((end) => end());
}

/**
 * Declares once more, where Redis has been emptied, what the configuration says that there is. Nodes restore
 * what they had of it first: whichever of them lives has beaten by `node.lost_after_ms`.
 */
function declareAgain(
  {
    config: { node },
    clock,
    log,
    stores: { dataset },
  }: Pick<DaemonParts, "config" | "clock" | "log" | "stores">,
  declare: () => Promise<void>,
): () => void {
  let known: string | undefined;
  let cancel = (): void => {};
  const declareNow = (): void =>
    void declare().catch((error: unknown) =>
      log.error({ error: textOf(error) }, "declared pools were not looked for in an emptied Redis"),
    );
  const look = async (): Promise<void> => {
    const { name } = (await dataset.join(undefined)).dataset;
    if (known !== undefined && name !== known) {
      cancel();
      cancel = clock.after(node.lostAfterMs, declareNow);
    }
    known = name;
  };
  const stop = clock.every(node.beatPeriodMs, () => void look().catch(() => {}));
  return () => {
    stop();
    cancel();
  };
}
