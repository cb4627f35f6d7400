import { rootPrincipal } from "../../../src/access/principal.js";
import type { ControlMessage, NodeReply } from "../../../src/pool/ports/messages.js";
import { partitionOf, newControlId, newRequestId, type PoolId } from "../../../src/base/ids.js";
import { makeAcquire } from "../../../src/lease/acquire.js";
import type { Browser } from "../../../src/pool/browser.js";
import { SessionReader } from "../../../src/pool/launch-templates.js";
import { deliver } from "../../../src/daemon/control/lending.js";
import { Waiters } from "../../../src/lease/waiters.js";
import { Grants } from "../../../src/lease/grants.js";
import type { Caller } from "../../../src/spec/caller.js";
import { makeCreatePool } from "../../../src/pool/create-pool.js";
import { makeGetPool, makeRemovePool } from "../../../src/pool/pool-operations.js";
import type { SpecDefaults } from "../../../src/pool/merge-spec.js";
import { makeUpdatePool } from "../../../src/pool/update-pool.js";
import type { PoolStore, Jobs } from "../../../src/pool/ports/pool-store.js";
import type { ProjectStore } from "../../../src/pool/ports/project-store.js";
import type { NodeReports } from "../../../src/pool/ports/node-reports.js";
import type { References } from "../../../src/registry/references.js";
import { makeRelease, makeRemoveSession } from "../../../src/lease/release.js";
import { makeCreateSession } from "../../../src/lease/create-session.js";
import type { StandbyShape } from "../../../src/pool/standby/shapes.js";
import { makeGetSession, makeUpdateSession } from "../../../src/lease/update-session.js";
import { makeListSessions } from "../../../src/lease/list-sessions.js";
import type { StoreLimits } from "../../../src/store/limits.js";
import { listenAsControl } from "../../../src/store/messages.js";
import { connectForMessages } from "../../../src/store/redis/connect.js";
import { systemClock } from "../../../src/base/clock.js";
import { silentLog } from "../browser/chromium-host.js";
import { DrivenClock } from "../driven-clock.js";
import { startRedis, type TestRedis } from "../store/redis.js";
import { openStoreBed, type StoreBed } from "../store/store-bed.js";
import { type Broken, failing } from "../failing.js";
import { patternsOf } from "../../../src/base/net/hosts.js";

const maxWaitMs = 50_000;

/** What the bed's control decides where a caller says nothing. */
export const defaultsOfBed: SpecDefaults = {
  fillRatePerMinute: 6000,
  maxFillRatePerMinute: null,
  engine: "chromium",
  privateHostsCeiling: patternsOf(["0.0.0.0/0", "::/0"]),
};

/**
 * Everything a control does over a real store, without HTTP and on a driven clock; a test says which calls of
 * the store fail.
 */
export type ControlBed = Awaited<ReturnType<typeof openControlBed>>;

interface ControlBedOptions extends Partial<StoreLimits> {
  /** A Redis that several controls share; else the bed starts one. */
  readonly server?: TestRedis;
  /** Which calls fail; else the bed makes a set. */
  readonly broken?: Broken;
  /** Whether its process has died before it carried out what a script left to be done. */
  readonly isEffectLost?: () => boolean;
  /** What stands by for sessions on demand. */
  readonly shapes?: readonly StandbyShape[];
}

export async function openControlBed(project: string, options: ControlBedOptions = {}) {
  const { server: shared, broken = new Set(), isEffectLost, shapes = [], ...limits } = options;
  const server = shared ?? (await startRedis());
  const bed: StoreBed = await openStoreBed(server, {
    project,
    limits,
    ...(isEffectLost && { isEffectLost }),
  });
  const poolStore = failing<PoolStore>(bed.poolStore, broken);
  const projects = failing<ProjectStore>(bed.projects, broken);
  const jobs = failing<Jobs>({ add: async (more) => void bed.jobs.push(...more) }, broken);
  const control = newControlId();
  const clock = new DrivenClock();
  const waiters = new Waiters(clock);
  const grants = new Grants(control, {
    poolStore,
    projects: { at: () => projects },
    waiters,
    clock,
    log: silentLog,
    beatPeriodMs: 1000,
  });
  const messages: ControlMessage[] = [];
  const lost = new Set<ControlMessage["kind"]>();
  const connect = () =>
    connectForMessages({
      url: server.url,
      isCluster: false,
      connectTimeoutMs: 2000,
      commandTimeoutMs: 10_000,
    });
  const listener = await listenAsControl(
    { store: bed.store, clock: systemClock, log: silentLog, limitMs: 10_000, connect },
    control,
    {
      onMessage: (message) => {
        messages.push(message);
        if (message.kind !== "answer" && !lost.has(message.kind)) deliver({ waiters, grants }, message);
      },
    },
  );
  const { proxies, profiles, extensions, destinations, vaults } = bed;
  const refs: References = { proxies, profiles, extensions, destinations, vaults };
  const sessionReader = new SessionReader(poolStore, refs);
  const lending = { poolStore, projects, waiters, grants, sessionReader, control, clock };
  const defaults = defaultsOfBed;
  const poolPorts = {
    poolStore,
    projects,
    ...refs,
    defaults,
    region: "us-east",
    maxPoolSize: 1000,
    pooledSessions: 20,
    maxPools: 10,
    kick() {},
  };
  const asked: unknown[] = [];
  const standbyAsked: ("taken" | "missed")[] = [];
  let nodeAnswer: NodeReply["kind"] = "done";
  let nodeText: string | undefined;
  let whileAsked: (browser: Browser) => Promise<unknown> = async () => {};
  const sessionPorts = {
    poolStore,
    projects,
    sessionReader,
    reports: failing<NodeReports>(bed.reports, broken),
    ...refs,
    restartLimitMs: 35_000,
    askNode: async (browser: Browser, what: unknown) => {
      asked.push(what);
      await whileAsked(browser);
      return nodeAnswer === "failed" && nodeText !== undefined
        ? { kind: nodeAnswer, text: nodeText }
        : { kind: nodeAnswer };
    },
  };
  const ending = { poolStore, projects, sessionReader, retryWindowMs: 120_000, clock, saveWaitMs: 30_000 };
  return {
    bed,
    broken,
    clock,
    waiters,
    grants,
    messages,
    /** Kinds of messages that do not arrive from now on. */
    lost,
    asked,
    standbyAsked,
    control,
    answerOfNode: (answer: typeof nodeAnswer, text?: string) => {
      nodeAnswer = answer;
      nodeText = text;
    },
    /** What happens between a question to the node and its answer. */
    whileNodeWorks: (work: typeof whileAsked) => void (whileAsked = work),
    acquire: makeAcquire({ ...lending, destinations, maxWaitMs }),
    createSession: makeCreateSession({
      ...lending,
      ...refs,
      nodes: bed.nodes,
      jobs,
      clock,
      defaults,
      region: "us-east",
      maxSessions: null,
      launchWaitMs: maxWaitMs,
      standbyShapes: shapes,
      standbyMeter: { asked: (outcome) => void standbyAsked.push(outcome) },
      fillStandby() {},
    }),
    release: makeRelease(ending),
    remove: makeRemoveSession(ending),
    createPool: makeCreatePool(poolPorts),
    updatePool: makeUpdatePool(poolPorts),
    removePool: makeRemovePool(poolPorts),
    getPool: makeGetPool(poolPorts),
    updateSession: makeUpdateSession(sessionPorts),
    getSession: makeGetSession(sessionPorts),
    listSessions: makeListSessions({
      poolStore,
      projects,
      sessionReader,
      profiles: bed.profiles,
      region: "us-east",
    }),
    waiting: async (pool: PoolId) => (await bed.poolStore.findPool(partitionOf(pool)))?.counts.waiting ?? 0,
    async close() {
      waiters.close();
      broken.clear();
      await grants.close();
      listener.close();
      await bed.close();
      if (!shared) await server.stop();
    },
  };
}

export const callerOf = (over: Partial<Caller> = {}): Caller => ({
  request: newRequestId(),
  principal: rootPrincipal({ id: "root", email: "root@remuda.invalid", name: null }),
  gone: new AbortController().signal,
  retryCount: 0,
  ...over,
});
