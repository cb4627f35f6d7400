import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { loadScripts } from "../../../src/store/redis/scripts.js";

/** Stands between a control and Redis, and cuts it off after so many of the changes it makes. */
export interface CutProxy {
  /** What `REDIS_URL` may be. */
  readonly url: string;
  /**
   * Redis carries out so many more changes, and then hears and says nothing any more. Resolves when it has
   * carried out the last, whose answer is lost. `scripts`: only calls of these count.
   */
  cutAfter(changes: number, scripts?: readonly string[]): Promise<void>;
  /** Every connection is closed, and new ones work again. */
  restore(): void;
  close(): Promise<void>;
}

const plainChanges = new Set(["HSET", "HDEL", "SET", "DEL", "ZADD", "ZREM", "EXEC"]);
/** What ticks, beats and watches do is no part of a request, and comes at any time. */
const others =
  /^(read-|find-|count-|reap|recycle|launch-demand|claim-launches|node-|living-|lose-|clear-|silence-|share-|ticks-|control-beat|lease-end|unknown-lease|store-tombstones)/;
const ownScripts = new Set(
  [...loadScripts()].flatMap(([name, { sha, judged }]) =>
    others.test(name) ? [] : [sha, judged?.sha ?? sha],
  ),
);

const scriptNames: ReadonlyMap<string, string> = new Map(
  [...loadScripts()].flatMap(([name, { sha, judged }]) => [
    [sha, name] as const,
    [judged?.sha ?? sha, name] as const,
  ]),
);
const isCallOf = ([command = "", sha = ""]: readonly string[], scripts: readonly string[]): boolean =>
  command.toUpperCase() === "EVALSHA" && scripts.includes(scriptNames.get(sha) ?? "");

function isChange(parts: readonly string[]): boolean {
  const [name = "", first = "", , key = first] = parts;
  const command = name.toUpperCase();
  if (command === "EVALSHA") return ownScripts.has(first) && !key.includes("{queue}");
  return plainChanges.has(command) && !/\{(nodes|queue)\}/.test(first);
}

interface Command {
  readonly parts: readonly string[];
  readonly end: number;
}
/** Enough of a part to know a command and its key by. */
const shownBytes = 200;

/** The commands that are complete, each with where it ends (redis.io, Redis serialization protocol). */
function* commandsIn(bytes: Buffer): Generator<Command> {
  for (let at = 0, next = commandAt(bytes, at); next; next = commandAt(bytes, at)) {
    yield next;
    at = next.end;
  }
}

function commandAt(bytes: Buffer, at: number): Command | undefined {
  const head = numberAt(bytes, at);
  const parts: string[] = [];
  let end = head?.end ?? bytes.length;
  for (let left = head?.value ?? 0; left > 0; left -= 1) {
    const size = numberAt(bytes, end);
    if (!size || size.end + size.value + 2 > bytes.length) return undefined;
    parts.push(bytes.toString("latin1", size.end, size.end + Math.min(size.value, shownBytes)));
    end = size.end + size.value + 2;
  }
  return head && { parts, end };
}

/** A line of one character and a number. */
function numberAt(bytes: Buffer, from: number): { value: number; end: number } | undefined {
  const end = bytes.indexOf("\r\n", from);
  return end < 0 ? undefined : { value: Number(bytes.toString("latin1", from + 1, end)), end: end + 2 };
}

export async function openCutProxy(target: string): Promise<CutProxy> {
  const at = `${target}.cut`;
  const open = new Set<Socket>();
  let left = Infinity;
  let isCounted = isChange;
  let isCut = false;
  let reached: () => void = () => {};

  const carry = (socket: Socket): void => {
    if (isCut) return void socket.destroy();
    const onward = connect({ path: target });
    open.add(socket).add(onward);
    let partial = Buffer.alloc(0);
    const pass = (piece: Buffer): void => {
      partial = Buffer.concat([partial, piece]);
      let passed = 0;
      for (const { parts, end } of commandsIn(partial)) {
        passed = end;
        if (isCounted(parts) && (left -= 1) === 0) return cut(partial.subarray(0, end));
      }
      onward.write(partial.subarray(0, passed));
      partial = partial.subarray(passed);
    };
    const cut = (last: Buffer): void => {
      isCut = true;
      // Redis carries out what has come before it looks at the end of the connection.
      onward.once("close", () => reached()).end(last);
    };
    socket.on("data", (piece: Buffer) => void (isCut || pass(piece)));
    onward.on("data", (piece: Buffer) => void (isCut || socket.write(piece)));
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const)
      one
        .on("error", () => {})
        .once("close", () => {
          open.delete(one);
          if (!isCut) other.destroy();
        });
  };
  const server = createServer({ allowHalfOpen: true }, carry).listen(at);
  await once(server, "listening");
  return {
    url: at,
    cutAfter: (changes, scripts) => {
      left = changes;
      isCounted = scripts ? (parts) => isCallOf(parts, scripts) : isChange;
      return new Promise((resolve) => (reached = resolve));
    },
    restore() {
      isCut = false;
      left = Infinity;
      for (const socket of open) socket.destroy();
    },
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, "close");
    },
  };
}
