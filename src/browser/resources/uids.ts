import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { CannotStart } from "../../base/cannot-start.js";

/** Uids for browsers, each used by one browser of this machine at a time. */
export interface Uids {
  /** Takes the lowest free uid. */
  take(): number;
  give(uid: number): void;
  /**
   * True where the uid is of this daemon's block. Whatever it owns and no living browser holds was left by an
   * earlier daemon.
   */
  owns(uid: number): boolean;
  /** True where a living browser has the uid. */
  isTaken(uid: number): boolean;
  close(): Promise<void>;
}

/** No node can hold this many browsers. */
const blockSize = 1000;
const blocks = 1000;

/**
 * Blocks begin at multiples of their size, so that blocks of daemons with different bases are the same or
 * apart.
 */
const firstBlock = (base: number): number => Math.ceil(base / blockSize) * blockSize;

/**
 * Claims the first block of uids, from `base` on, that no other living daemon of this machine holds. The
 * claim is an abstract unix socket: the kernel makes it exclusive and drops it with the daemon, however that
 * ends.
 */
export async function openUids(base: number): Promise<Uids> {
  for (let block = 0; block < blocks; block += 1) {
    const first = firstBlock(base) + block * blockSize;
    const claim = await tryListen(`\0remuda-uids-${first}`);
    if (claim) return uidsFrom(first, claim);
  }
  throw new CannotStart(`every block of uids from ${base} on is held by another daemon`);
}

/**
 * True where this process may give the uids of its first block, as user and as group. Root of a user
 * namespace has only those that are mapped into it; every other is refused with EINVAL (user_namespaces(7)).
 */
export async function areUidsMapped(base: number): Promise<boolean> {
  const first = firstBlock(base);
  const maps = await Promise.all(
    ["uid_map", "gid_map"].map((name) => readFile(`/proc/self/${name}`, "latin1").catch(() => undefined)),
  );
  return maps.every((map) => map === undefined || isCovered(map, first));
}

/** Each line names the first id inside, the first outside and how many. */
const isCovered = (map: string, first: number): boolean =>
  map.split("\n").some((line) => {
    const [inside = 0, , count = 0] = line.trim().split(/ +/).map(Number);
    return inside <= first && first + blockSize <= inside + count;
  });

function uidsFrom(first: number, claim: Server): Uids {
  const taken = new Set<number>();
  return {
    take() {
      for (let uid = first; uid < first + blockSize; uid += 1) {
        if (taken.has(uid)) continue;
        taken.add(uid);
        return uid;
      }
      throw new Error(`all ${blockSize} uids of this daemon are taken`);
    },
    give: (uid) => void taken.delete(uid),
    isTaken: (uid) => taken.has(uid),
    owns: (uid) => uid >= first && uid < first + blockSize,
    close: () => new Promise((resolve) => void claim.close(() => resolve())),
  };
}

const tryListen = (name: string): Promise<Server | undefined> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(name, () => resolve(server.unref()));
  });
