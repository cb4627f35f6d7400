import { once } from "node:events";
import { rmSync } from "node:fs";
import {
  connect,
  createServer,
  type ListenOptions,
  type NetConnectOpts,
  type Server,
  type Socket,
} from "node:net";

/** Where a Redis listens: the path of a socket, or a port of loopback. */
export type RedisPlace = string | number;

/**
 * Stands between daemons and a Redis on a socket of its own. Can be taken away, freeze, delay, and lead to
 * another Redis.
 */
export interface RedisProxy {
  /** What `REDIS_URL` may be. */
  readonly url: string;
  /** Every connection is cut, and none is taken any more. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  /**
   * Connections there are now carry nothing any more and are not closed, as behind a firewall that forgot
   * them; new ones work. `subscriptions`: only those that have subscribed; `replies`: what is asked arrives,
   * and no answer does.
   */
  freeze(which?: "all" | "subscriptions" | "replies"): void;
  /**
   * The next connection on which this is sent freezes just before; resolves then. `requests`: what was asked
   * before is answered still; `replies`: it arrives, and no answer does.
   */
  freezeAt(text: string, which?: "all" | "requests" | "replies"): Promise<void>;
  /** What was sent on frozen connections arrives after all, and then their ends. */
  thaw(): Promise<void>;
  /** Everything takes so much longer, each way. */
  delay(ms: number): void;
  /** New connections lead to this place after the call; those that exist stay where they are. */
  move(target: RedisPlace): void;
  close(): Promise<void>;
}

interface Carried {
  readonly ends: readonly [Socket, Socket];
  isFrozen: boolean;
  /** Frozen from Redis to the client alone. */
  isMute: boolean;
  /** Frozen from the client to Redis alone. */
  isDeaf: boolean;
  hasSubscribed: boolean;
  /** What was sent to Redis meanwhile. */
  readonly held: Buffer[];
}

type FrozenPart = "isFrozen" | "isMute" | "isDeaf";
const frozenParts = { all: "isFrozen", requests: "isDeaf", replies: "isMute" } as const;

const optionsOf = (place: RedisPlace): NetConnectOpts =>
  typeof place === "number" ? { host: "127.0.0.1", port: place } : { path: place };

/** `at`: the path of the proxy's own socket, by default beside that of its target; or a port. */
export async function openRedisProxy(
  target: RedisPlace,
  at: RedisPlace = `${String(target)}.proxy`,
): Promise<RedisProxy> {
  const carried = new Set<Carried>();
  let leadsTo = target;
  let delayMs = 0;
  let server: Server | undefined;
  let awaited: { readonly text: string; readonly part: FrozenPart; readonly come: () => void } | undefined;
  const later = (work: () => void): void => void (delayMs === 0 ? work() : setTimeout(work, delayMs));

  const carry = (socket: Socket): void => {
    const onward = connect(optionsOf(leadsTo));
    const pair: Carried = {
      ends: [socket, onward],
      isFrozen: false,
      isMute: false,
      isDeaf: false,
      hasSubscribed: false,
      held: [],
    };
    carried.add(pair);
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      from.on("data", (piece: Buffer) => {
        if (from === socket && piece.includes("subscribe")) pair.hasSubscribed = true;
        if (awaited && from === socket && piece.includes(awaited.text)) {
          pair[awaited.part] = true;
          awaited.come();
          awaited = undefined;
        }
        if (pair.isFrozen && from === socket) pair.held.push(piece);
        const isStopped = (): boolean => pair.isFrozen || (from === onward ? pair.isMute : pair.isDeaf);
        if (!isStopped()) later(() => void (isStopped() || to.write(piece)));
      });
      from
        .on("error", () => {})
        .once("close", () => {
          // The other end of a frozen connection never hears of it.
          if (pair.isFrozen) return;
          carried.delete(pair);
          later(() => to.destroy());
        });
    }
  };
  const restore = async (): Promise<void> => {
    server = createServer(carry).listen(optionsOf(at) as ListenOptions);
    await once(server, "listening");
  };
  const cut = async (): Promise<void> => {
    const closing = server;
    server = undefined;
    if (!closing) return;
    closing.close();
    for (const { ends } of carried) for (const end of ends) end.destroy();
    carried.clear();
    await once(closing, "close");
    if (typeof at === "string") rmSync(at, { force: true });
  };
  await restore();
  return {
    url: typeof at === "string" ? at : `redis://127.0.0.1:${at}`,
    cut,
    restore,
    close: cut,
    freeze(which = "all") {
      for (const pair of carried)
        if (which === "replies") pair.isMute = true;
        else if (which === "all" || pair.hasSubscribed) pair.isFrozen = true;
    },
    freezeAt: (text, which = "all") =>
      new Promise((resolve) => (awaited = { text, part: frozenParts[which], come: resolve })),
    async thaw() {
      const frozen = [...carried].filter(({ isFrozen }) => isFrozen);
      for (const pair of frozen) carried.delete(pair);
      await Promise.all(
        frozen.map(async ({ ends: [socket, onward], held }) => {
          const closed = onward.destroyed ? undefined : once(onward, "close");
          onward.end(Buffer.concat(held));
          await closed;
          socket.destroy();
        }),
      );
    },
    delay: (ms) => void (delayMs = ms),
    move: (place) => void (leadsTo = place),
  };
}
