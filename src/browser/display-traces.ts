import { readdir, readFile, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";

const lockDirectory = "/tmp";
const socketDirectory = "/tmp/.X11-unix";

export interface Traces {
  readonly pid: number;
  /** The browser's own, null where it has none. */
  readonly uid: number | null;
  readonly number?: number;
  /** Which file its socket is; another server may have made one of the same name since. */
  readonly socket?: string | undefined;
}

/** What an X server that was killed leaves: with -displayfd it makes a socket, but no lock. */
export async function removeTraces({ pid, uid, number, socket }: Traces): Promise<void> {
  for (const each of await lockedNumbers()) {
    if ((await holderOf(each)) === pid) await removeNumber(each);
  }
  if (uid !== null) return await removeSocketsOf(uid);
  if (number !== undefined && socket !== undefined && (await findSocket(number)) === socket) await rm(socketOf(number), { force: true });
}

export async function findSocket(number: number): Promise<string | undefined> {
  return await stat(socketOf(number)).then(({ ino, ctimeMs }) => `${ino} ${ctimeMs}`, () => undefined);
}

async function removeSocketsOf(uid: number): Promise<void> {
  const paths = (await namesIn(socketDirectory)).map((name) => join(socketDirectory, name));
  const owners = await Promise.all(paths.map((path) => stat(path).then((found) => found.uid, () => undefined)));
  await Promise.all(paths.filter((_, at) => owners[at] === uid).map((path) => rm(path, { force: true })));
}

/** Removes what killed X servers of these users have left, and nothing of one that still answers: a uid may have been given again. */
export async function sweepDisplays(isOurs: (uid: number) => boolean): Promise<void> {
  const sockets = (await namesIn(socketDirectory)).map((name) => Number(name.slice(1)));
  const keymaps = (await namesIn(lockDirectory)).flatMap((name) => /^server-(\d+)\.xkm$/.exec(name)?.[1] ?? []).map(Number);
  for (const number of new Set([...(await lockedNumbers()), ...sockets, ...keymaps])) {
    if ((await isOwned(number, isOurs)) && !(await isAnswered(number))) await removeNumber(number);
  }
}

async function lockedNumbers(): Promise<number[]> {
  return (await namesIn(lockDirectory)).flatMap((name) => /^\.X(\d+)-lock$/.exec(name)?.[1] ?? []).map(Number);
}

const namesIn = (directory: string): Promise<string[]> => readdir(directory).catch(() => []);

const lockOf = (number: number): string => join(lockDirectory, `.X${number}-lock`);
export const socketOf = (number: number): string => join(socketDirectory, `X${number}`);

/** Where its keyboard compiler writes; the file stays when the server is killed just then. */
const keymapOf = (number: number): string => join(lockDirectory, `server-${number}.xkm`);

// The lock last: while it is there, no other server takes the number.
async function removeNumber(number: number): Promise<void> {
  await rm(keymapOf(number), { force: true });
  await rm(socketOf(number), { force: true });
  await rm(lockOf(number), { force: true });
}

async function holderOf(number: number): Promise<number | undefined> {
  const text = await readFile(lockOf(number), "latin1").catch(() => undefined);
  return text === undefined ? undefined : Number(text);
}

/** Does a server take connections? It does so before it compiles its keymap. */
const isAnswered = (number: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(socketOf(number));
    const settle = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once("connect", () => settle(true)).once("error", () => settle(false));
  });

async function isOwned(number: number, isOurs: (uid: number) => boolean): Promise<boolean> {
  const paths = [lockOf(number), socketOf(number), keymapOf(number)];
  const found = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)));
  return found.some((entry) => entry !== undefined && isOurs(entry.uid));
}
