import { KubeConfig } from "@kubernetes/client-node";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

type Json = Record<string, unknown>;
export interface Resource {
  readonly metadata: {
    name: string;
    uid: string;
    generation: number;
    resourceVersion: string;
    deletionTimestamp?: string;
    finalizers?: string[];
    annotations?: Record<string, string>;
  };
  spec: { replicas: number; pool?: Json };
  status?: Json;
}
interface Pod {
  readonly metadata: { readonly name: string; annotations?: Record<string, string> };
}
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly body: Json | undefined;
}

const pools = "/apis/remuda.dev/v1alpha1/namespaces/remuda/browserpools";
const pods = "/api/v1/namespaces/remuda/pods";

/**
 * Answers as the API server of Kubernetes 1.36 does, as far as the operator asks: lists, watches, merge
 * patches with a version, server-side apply of a status, conflicts, and a 410 that comes as an event.
 */
export class TestCluster {
  readonly asked: Asked[] = [];
  readonly resources = new Map<string, Resource>();
  readonly pods = new Map<string, Pod>();
  /**
   * Answers instead of the cluster; a request that it answers with "hang" is never answered. One that it
   * answers with "lost" is done, and its connection breaks before it is answered.
   */
  interfere: (asked: Asked) => number | "hang" | "lost" | undefined = () => undefined;
  #version = 1;
  #made = 0;
  #port = 0;
  /** Settled while the server answers. */
  #running: Promise<void> = Promise.resolve();
  readonly #lost = new WeakSet<ServerResponse>();
  #watchers = new Set<ServerResponse>();

  private constructor(private readonly server: ReturnType<typeof createServer>) {}

  static async open(): Promise<TestCluster> {
    const server = createServer();
    const cluster = new TestCluster(server);
    server.on("request", (request, response) => void cluster.#answer(request, response));
    await cluster.revive();
    return cluster;
  }

  /** As it is killed: its connections break, and nobody listens. What it has stored stays. */
  async kill(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }

  /** Starts it again, where it was. */
  async revive(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.server.address() as AddressInfo).port;
  }

  /** Answers nobody and tells nobody anything until the result is called, as a server that is stopped. */
  hang(): () => void {
    let goOn = (): void => {};
    this.#running = new Promise((resolve) => (goOn = resolve));
    return goOn;
  }

  get kubeConfig(): KubeConfig {
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromClusterAndUser(
      { name: "test", server: `http://127.0.0.1:${this.#port}`, skipTLSVerify: true },
      { name: "operator", token: "token" },
    );
    return kubeConfig;
  }

  put(name: string, spec: Resource["spec"]): Resource {
    const before = this.resources.get(name);
    if (!before) this.#made += 1;
    const uid = this.#made > 1 ? `uid-of-${name}-${this.#made}` : `uid-of-${name}`;
    const resource: Resource = {
      ...before,
      metadata: {
        ...(before?.metadata ?? { name, uid }),
        generation: (before?.metadata.generation ?? 0) + 1,
        resourceVersion: this.#next(),
      },
      spec,
    };
    this.resources.set(name, resource);
    this.#tell(before ? "MODIFIED" : "ADDED", resource);
    return resource;
  }

  /** Marks it; it goes with its last finalizer. */
  remove(name: string): void {
    const resource = this.resources.get(name);
    if (!resource) return;
    resource.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    resource.metadata.generation += 1;
    this.#changed(resource);
  }

  annotate(name: string, annotations: Record<string, string>): void {
    const resource = this.resources.get(name);
    if (!resource) return;
    resource.metadata.annotations = annotations;
    this.#changed(resource);
  }

  addPod(name: string, annotations?: Record<string, string>): void {
    this.pods.set(name, { metadata: { name, ...(annotations && { annotations }) } });
  }

  /** Ends every watch, as a proxy or an API server that restarts does. */
  cutWatches(): void {
    for (const watcher of this.#watchers) watcher.destroy();
    this.#watchers.clear();
  }

  /** Tells watchers that their version is too old. */
  expireWatches(): void {
    const object = { kind: "Status", code: 410, reason: "Expired", message: "too old resource version" };
    for (const watcher of this.#watchers) watcher.end(`${JSON.stringify({ type: "ERROR", object })}\n`);
    this.#watchers.clear();
  }

  get watching(): number {
    return this.#watchers.size;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  #next(): string {
    this.#version += 1;
    return String(this.#version);
  }

  #changed(resource: Resource): void {
    resource.metadata.resourceVersion = this.#next();
    const isGone = resource.metadata.deletionTimestamp && !resource.metadata.finalizers?.length;
    if (isGone) this.resources.delete(resource.metadata.name);
    this.#tell(isGone ? "DELETED" : "MODIFIED", resource);
  }

  #tell(type: string, object: object): void {
    const line = `${JSON.stringify({ type, object })}\n`;
    const told = [...this.#watchers];
    void this.#running.then(() => told.forEach((watcher) => watcher.write(line)));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { pathname, searchParams } = new URL(request.url ?? "", "http://cluster");
    const asked: Asked = {
      method: request.method ?? "",
      path: pathname,
      type: request.headers["content-type"] ?? "",
      body: text === "" ? undefined : (JSON.parse(text) as Json),
    };
    this.asked.push(asked);
    await this.#running;
    const interference = this.interfere(asked);
    if (interference === "hang" || response.destroyed) return;
    if (interference === "lost") this.#lost.add(response);
    else if (interference !== undefined) return this.#fail(response, interference, "Interference");
    if (pathname === pools && searchParams.get("watch") === "true") return this.#watch(response);
    this.#act(asked, response);
  }

  #watch(response: ServerResponse): void {
    if (this.#lost.has(response)) return void response.destroy();
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    this.#watchers.add(response);
    response.on("close", () => this.#watchers.delete(response));
  }

  #act({ method, path, body, type }: Asked, response: ServerResponse): void {
    if (path === pools)
      return this.#send(response, {
        kind: "BrowserPoolList",
        metadata: { resourceVersion: String(this.#version) },
        items: [...this.resources.values()],
      });
    if (path === pods)
      return this.#send(response, { kind: "PodList", metadata: {}, items: [...this.pods.values()] });
    const [, name = "", part] = path.replace(pools, "").replace(pods, "").split("/");
    if (path.startsWith(pods)) return this.#patchPod(response, name, body);
    const resource = this.resources.get(name);
    if (!resource) return this.#fail(response, 404, "NotFound");
    if (method === "GET") return this.#send(response, resource);
    if (part === "status") return this.#applyStatus(response, resource, { body, type });
    const wanted = body?.["metadata"] as Partial<Resource["metadata"]> | undefined;
    if (wanted?.resourceVersion !== undefined && wanted.resourceVersion !== resource.metadata.resourceVersion)
      return this.#fail(response, 409, "Conflict");
    if (wanted?.finalizers) resource.metadata.finalizers = wanted.finalizers;
    this.#changed(resource);
    this.#send(response, resource);
  }

  #applyStatus(
    response: ServerResponse,
    resource: Resource,
    { body, type }: Pick<Asked, "body" | "type">,
  ): void {
    if (!type.startsWith("application/apply-patch+yaml")) return this.#fail(response, 415, "Unsupported");
    const uid = (body?.["metadata"] as { uid?: string } | undefined)?.uid;
    if (uid !== resource.metadata.uid) return this.#fail(response, 409, "Conflict");
    resource.status = body?.["status"] as Json;
    this.#changed(resource);
    this.#send(response, resource);
  }

  #patchPod(response: ServerResponse, name: string, body: Json | undefined): void {
    const pod = this.pods.get(name);
    if (!pod) return this.#fail(response, 404, "NotFound");
    const metadata = body?.["metadata"] as { annotations: Record<string, string> } | undefined;
    pod.metadata.annotations = { ...pod.metadata.annotations, ...metadata?.annotations };
    this.#send(response, pod);
  }

  #fail(response: ServerResponse, code: number, reason: string): void {
    if (this.#lost.has(response)) return void response.destroy();
    response.writeHead(code, { "content-type": "application/json" });
    response.end(JSON.stringify({ kind: "Status", status: "Failure", code, reason, message: reason }));
  }
  #send(response: ServerResponse, value: object): void {
    if (this.#lost.has(response)) return void response.destroy();
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  }
}
