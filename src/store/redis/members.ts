import { Cluster, type Redis } from "ioredis";
import type { RedisClient } from "./connect.js";

export interface RedisMember {
  readonly host: string;
  readonly port: number;
}

/** The answer to ROLE: of a master its replicas, of a replica its master. */
function membersIn(role: unknown): readonly RedisMember[] {
  const [kind, second, third]: readonly unknown[] = Array.isArray(role) ? role : [];
  if (kind === "slave") return [{ host: String(second), port: Number(third) }];
  return Array.isArray(third)
    ? third.map(([host, port]: [unknown, unknown]) => ({ host: String(host), port: Number(port) }))
    : [];
}

/** Whom its name has led to. */
function peerOf({ stream }: Redis): readonly RedisMember[] {
  const { remoteAddress: host, remotePort: port } = stream as {
    readonly remoteAddress?: string;
    readonly remotePort?: number;
  };
  return host !== undefined && port !== undefined ? [{ host, port }] : [];
}

/**
 * Lists where else the data is, or will be after a failover: nodes of the cluster, else the master and its
 * replicas.
 */
export async function membersOf(redis: RedisClient): Promise<readonly RedisMember[]> {
  if (redis instanceof Cluster)
    return redis
      .nodes("all")
      .flatMap(({ options: { host, port } }) => (host && port ? [{ host, port }] : []));
  return [...membersIn(await redis.call("ROLE")), ...peerOf(redis)];
}
