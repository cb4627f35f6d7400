import { readdir, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";

/** X servers that have no private root put their sockets here. */
const sharedDirectory = "/tmp/.X11-unix";

export const sharedSocket = (number: number): string => join(sharedDirectory, `X${number}`);

/**
 * Removes the socket files of X servers that were killed. A socket that still answers is left, since its uid
 * may have been given out again.
 */
export async function sweepSharedSockets(isOurs: (uid: number) => boolean): Promise<void> {
  const paths = (await readdir(sharedDirectory).catch(() => [])).map((name) => join(sharedDirectory, name));
  for (const path of paths) {
    const owner = await stat(path).then(
      ({ uid }) => uid,
      () => undefined,
    );
    if (owner !== undefined && isOurs(owner) && !(await isAnswered(path))) await rm(path, { force: true });
  }
}

const isAnswered = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    const settle = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once("connect", () => settle(true)).once("error", () => settle(false));
  });
