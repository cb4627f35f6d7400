import { join } from "node:path";
import type { Millis } from "../../base/clock.js";
import { type FairTurn, turns } from "../../base/fair-turns.js";
import { type Cdp, CdpRefused, type CdpParams } from "../cdp/cdp.js";
import { readLists } from "../cdp/list-reader.js";
import { findForeignFile, putForeignFile, removeForeignFile } from "../foreign-file.js";
import type { Workspace } from "../workspace.js";

/** A cookie in the form in which CDP sets it. */
type Cookie = CdpParams<"Storage.setCookies">["cookies"][number];

/**
 * Keeps all cookies as they were when the browser was asked to exit. Chromium forgets those without an expiry
 * at its exit, and many logins are such; the others it writes every 30 s and at its exit, and on a busy
 * machine its process ends before that is done (Chromium 156, docs/chromium.md#profiles). The file lies in
 * the user-data directory, so that it is where the other cookies are and goes wherever those go.
 */
const fileIn = ({ directories }: Workspace): string =>
  join(directories.profile, "remuda-session-cookies.json");

/**
 * Chromium keeps 3300 cookies of at most 4096 bytes (net/cookies/cookie_monster.h), and these take some text
 * more.
 */
const mostBytes = 2 ** 25;

export async function cookiesOf(cdp: Cdp, limitMs: Millis): Promise<readonly Cookie[]> {
  const { cookies } = await cdp.send("Storage.getCookies", {}, { limitMs });
  // A session cookie that is set with a time to expire would have expired, even with the -1 that CDP shows
  // for none.
  return cookies.map(({ expires, session, ...cookie }) => (session ? cookie : { ...cookie, expires }));
}

/**
 * Keeps the cookies of a browser that is to end, and may still live, in the place of what an earlier one has
 * left.
 */
export async function keepCookies(workspace: Workspace, cookies: readonly Cookie[]): Promise<void> {
  const path = fileIn(workspace);
  if (cookies.length === 0) return await removeForeignFile(path);
  await putForeignFile(path, textOf(cookies), workspace.uid).catch(async (error: unknown) => {
    // Half of them would be in the way of whatever needs the room.
    await removeForeignFile(path);
    throw error;
  });
}

/** Yields to the event loop between cookies, because there may be 32 MiB of them. */
async function* textOf(cookies: readonly Cookie[]): AsyncGenerator<string> {
  const turn = turns.open();
  for (const [place, some] of batchesOf(cookies).entries()) {
    await turn.come();
    yield turn.run(() => `${place === 0 ? "[" : ","}${JSON.stringify(some).slice(1, -1)}`);
  }
  yield "]";
}

/** So many take some 2 ms at most: Chromium keeps 4 KiB of a cookie, and JSON may take six times as many. */
const batchSize = 32;
const batchesOf = (cookies: readonly Cookie[]): readonly (readonly Cookie[])[] =>
  Array.from({ length: Math.ceil(cookies.length / batchSize) }, (_, place) =>
    cookies.slice(place * batchSize, (place + 1) * batchSize),
  );

/**
 * Gives the browser that has started there the cookies that it lacks. The file stays, since the next start
 * needs it where this one fails.
 */
export async function giveCookies(workspace: Workspace, cdp: Cdp): Promise<void> {
  const turn = turns.open();
  const kept = await findCookies(fileIn(workspace), turn);
  if (kept.length === 0) return;
  const known = new Set((await cdp.send("Storage.getCookies", {})).cookies.map(nameOf));
  const cookies = kept.filter((cookie) => !known.has(nameOf(cookie)));
  for (const some of batchesOf(cookies)) {
    await turn.come();
    await turn.run(() => setCookies(cdp, some));
  }
}

async function setCookies(cdp: Cdp, cookies: readonly Cookie[]): Promise<void> {
  // Chromium refuses all cookies for one bad one; then they are set one by one.
  await cdp.send("Storage.setCookies", { cookies: [...cookies] }).catch((error: unknown) => {
    if (!(error instanceof CdpRefused)) throw error;
    return Promise.allSettled(cookies.map((cookie) => cdp.send("Storage.setCookies", { cookies: [cookie] })));
  });
}

/** What identifies a cookie (RFC 6265, 5.3, and the partition that it is in). */
const nameOf = ({ name, domain, path, partitionKey }: Cookie): string =>
  JSON.stringify([name, domain, path, partitionKey]);

/** The browser owned the file while it was packed, so it may hold anything. */
async function findCookies(path: string, turn: FairTurn): Promise<Cookie[]> {
  const text = await findForeignFile(path, mostBytes);
  try {
    const values = text && (await readLists({ depth: 1, parts: [text] }, turn));
    return Array.isArray(values) ? values.filter(isCookie) : [];
  } catch {
    return [];
  }
}

const isCookie = (value: unknown): value is Cookie =>
  typeof value === "object" &&
  value !== null &&
  "name" in value &&
  typeof value.name === "string" &&
  "value" in value &&
  typeof value.value === "string";
