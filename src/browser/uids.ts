import { createServer, type Server } from "node:net";

/** Uids for browsers, each used by one browser of this machine at a time. */
export interface Uids {
  /** The lowest free one. */
  take(): number;
  give(uid: number): void;
  /** Whether the uid is of this daemon's block: what it owns and nobody living holds was left by an earlier daemon. */
  owns(uid: number): boolean;
  close(): Promise<void>;
}

/** More browsers than one node can hold. */
const blockSize = 1000;
const blocks = 1000;

/**
 * Claims the first block of uids, counted from `base`, that no other living daemon of this machine holds. The claim is an
 * abstract unix socket: the kernel makes it exclusive and drops it with the daemon, however that ends.
 */
export async function openUids(base: number): Promise<Uids> {
  for (let block = 0; block < blocks; block += 1) {
    const first = base + block * blockSize;
    const claim = await tryListen(`\0remuda-uids-${first}`);
    if (claim) return uidsFrom(first, claim);
  }
  throw new Error(`every block of uids from ${base} on is held by another daemon`);
}

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
    owns: (uid) => uid >= first && uid < first + blockSize,
    close: () => new Promise((resolve) => void claim.close(() => resolve())),
  };
}

const tryListen = (name: string): Promise<Server | undefined> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => (error.code === "EADDRINUSE" ? resolve(undefined) : reject(error)));
    server.listen(name, () => resolve(server.unref()));
  });
