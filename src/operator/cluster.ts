import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  Observable,
  type ObservableMiddleware,
  PatchStrategy,
  type RequestContext,
  setHeaderOptions,
  Watch,
} from "@kubernetes/client-node";
import { Type } from "typebox";
import { abortWith } from "../base/deadline.js";
import type { Clock, Millis } from "../base/clock.js";
import { parserOf } from "../base/parser.js";
import { BrowserPool, browserPools, type PoolStatus, type SeenMetadata } from "./browser-pool.js";

/** A node's pod. `cost` is what its annotation says now. */
interface NodePod {
  readonly name: string;
  readonly cost: string | undefined;
}

const costAnnotation = "controller.kubernetes.io/pod-deletion-cost";
const fieldManager = "remuda-operator";
/** The server is asked to end each watch then. */
const watchMs: Millis = 240_000;

const poolParser = parserOf("a BrowserPool", BrowserPool);
const listParser = parserOf(
  "a list of BrowserPools",
  Type.Object({
    items: Type.Array(Type.Unknown()),
    metadata: Type.Object({ resourceVersion: Type.Optional(Type.String()) }),
  }),
);

interface ClusterOptions {
  /** Where the API of Kubernetes is, and who asks; read from the pod, or from KUBECONFIG. */
  readonly kubeConfig: KubeConfig;
  readonly namespace: string;
  readonly clock: Clock;
  readonly limitMs: Millis;
  readonly stopping: AbortSignal;
}

interface PoolList {
  readonly pools: readonly BrowserPool[];
  /** Resources of which nothing can be made, as the API server should have refused them. */
  readonly faults: readonly string[];
  readonly version: string;
}

/** The API of Kubernetes, as far as the operator uses it. Every call has a limit. */
export class Cluster {
  readonly #custom: CustomObjectsApi;
  readonly #core: CoreV1Api;
  readonly #watch: Watch;
  readonly #where: { group: string; version: string; plural: string; namespace: string };

  constructor(private readonly options: ClusterOptions) {
    const { kubeConfig, namespace } = options;
    this.#custom = kubeConfig.makeApiClient(CustomObjectsApi);
    this.#core = kubeConfig.makeApiClient(CoreV1Api);
    this.#watch = new Watch(kubeConfig);
    const { group, version, plural } = browserPools;
    this.#where = { group, version, plural, namespace };
  }

  async list(): Promise<PoolList> {
    const got = listParser.value(
      await this.#within((options) => this.#custom.listNamespacedCustomObject(this.#where, options)),
    );
    const faults: string[] = [];
    const pools = got.items.flatMap((item) => {
      try {
        return [poolParser.value(item)];
      } catch (error) {
        faults.push(String(error));
        return [];
      }
    });
    return { pools, faults, version: got.metadata.resourceVersion ?? "" };
  }

  async find(name: string): Promise<BrowserPool | undefined> {
    try {
      const ask = { ...this.#where, name };
      return poolParser.value(
        await this.#within((options) => this.#custom.getNamespacedCustomObject(ask, options)),
      );
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  /**
   * Tells of resources that change, from that version on. It ends with the connection, in whatever
   * way that ends, and where the server has neither begun nor ended it in time: one that is stopped, or a
   * load balancer before one that is gone, may keep a connection open for ever.
   */
  async watch(version: string, onChange: (seen: SeenMetadata) => void): Promise<void> {
    const { group, version: apiVersion, plural, namespace } = this.#where;
    const path = `/apis/${group}/${apiVersion}/namespaces/${namespace}/${plural}`;
    const query = { resourceVersion: version, timeoutSeconds: watchMs / 1000, allowWatchBookmarks: true };
    const { stopping, clock, limitMs } = this.options;
    const told = (_phase: string, object: { metadata?: Partial<SeenMetadata> } | undefined): void => {
      const { name, ...rest } = object?.metadata ?? {};
      if (name) onChange({ ...rest, name });
    };
    let end = (): void => {};
    const over = new AbortController();
    let cancel = (): void => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const endIn = (ms: Millis, what: string): void => {
          cancel();
          cancel = clock.after(ms, () => reject(new Error(`a watch was not ${what} in ${ms} ms`)));
        };
        const done = (error: unknown): void => (error ? reject(error as Error) : resolve());
        stopping.addEventListener("abort", () => resolve(), { once: true, signal: over.signal });
        endIn(limitMs, "begun");
        void this.#watch.watch(path, query, told, done).then((controller) => {
          end = () => controller.abort();
          // One that is begun too late is nobody's.
          if (over.signal.aborted) end();
          else endIn(watchMs + limitMs, "ended");
        }, done);
      });
    } finally {
      over.abort();
      cancel();
      end();
    }
  }

  /** Sets the finalizers of exactly this version of a resource. Throws a conflict where it has changed. */
  async setFinalizers({ metadata }: BrowserPool, finalizers: readonly string[]): Promise<void> {
    const { name, resourceVersion } = metadata;
    const ask = { ...this.#where, name, body: { metadata: { resourceVersion, finalizers } } };
    await this.#within((options) =>
      this.#custom.patchNamespacedCustomObject(
        ask,
        setHeaderOptions("Content-Type", PatchStrategy.MergePatch, options),
      ),
    );
  }

  /** Goes by server-side apply: fields of others stay theirs, and `spec.replicas` is never touched. */
  async applyStatus({ metadata: { name, uid } }: BrowserPool, status: PoolStatus): Promise<void> {
    const { group, version, kind } = browserPools;
    const body = {
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name, namespace: this.#where.namespace, uid },
      status,
    };
    const ask = { ...this.#where, name, body, fieldManager, force: true };
    await this.#within((options) =>
      this.#custom.patchNamespacedCustomObjectStatus(
        ask,
        setHeaderOptions("Content-Type", PatchStrategy.ServerSideApply, options),
      ),
    );
  }

  async nodePods(): Promise<readonly NodePod[]> {
    const { namespace } = this.#where;
    const ask = { namespace, labelSelector: "app=remuda,role=node" };
    const { items } = await this.#within((options) => this.#core.listNamespacedPod(ask, options));
    return items.flatMap(({ metadata }) =>
      metadata?.name === undefined || metadata.deletionTimestamp
        ? []
        : [{ name: metadata.name, cost: metadata.annotations?.[costAnnotation] }],
    );
  }

  async setCost(name: string, cost: string): Promise<void> {
    const { namespace } = this.#where;
    const ask = { namespace, name, body: { metadata: { annotations: { [costAnnotation]: cost } } } };
    await this.#within((options) =>
      this.#core.patchNamespacedPod(ask, setHeaderOptions("Content-Type", PatchStrategy.MergePatch, options)),
    );
  }

  /** The client has no limit of its own: a connection that hangs would be waited for without end. */
  async #within<Value>(
    call: (options: {
      middleware: ObservableMiddleware[];
      middlewareMergeStrategy: "append";
    }) => Promise<Value>,
  ): Promise<Value> {
    const { clock, limitMs, stopping } = this.options;
    const late = new AbortController();
    const cancel = clock.after(limitMs, () => late.abort());
    const unfollow = abortWith(late, [stopping]);
    const limited: ObservableMiddleware = {
      pre(request: RequestContext) {
        request.setSignal(late.signal);
        return new Observable(Promise.resolve(request));
      },
      post: (response) => new Observable(Promise.resolve(response)),
    };
    try {
      return await call({ middleware: [limited], middlewareMergeStrategy: "append" });
    } finally {
      cancel();
      unfollow();
    }
  }
}

/** The status that Kubernetes has answered, if it has answered. */
export const clusterCodeOf = (error: unknown): number | undefined =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "number"
    ? error.code
    : undefined;

const refusalParser = parserOf(
  "a refusal of Kubernetes",
  Type.Object({ kind: Type.Literal("Status"), reason: Type.String() }),
);

/**
 * Kubernetes itself has no such resource. Whatever stands before it may answer 404, and so does a server that
 * does not know the definition yet.
 */
export function isAbsent(error: unknown): boolean {
  if (clusterCodeOf(error) !== 404) return false;
  const { body } = error as { readonly body?: unknown };
  try {
    return refusalParser.json(String(body)).reason === "NotFound";
  } catch {
    return false;
  }
}
