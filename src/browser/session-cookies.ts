import { constants } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Millis } from "../base/clock.js";
import { type Cdp, CdpRefused, type Given } from "./cdp.js";
import type { Home } from "./home.js";

/** As CDP sets it. */
type Cookie = Given<"Storage.setCookies">["cookies"][number];

/**
 * Cookies without an end, which many logins are: Chromium forgets them when it exits. They lie in the user-data directory
 * from its end on, so that they are where the other cookies are, and go wherever those go.
 */
const fileIn = ({ directories }: Home): string => join(directories.profile, "remuda-session-cookies.json");

/** Chromium keeps 3300 cookies of at most 4096 bytes (net/cookies/cookie_monster.h), and these take some text more. */
const mostBytes = 2 ** 25;

export async function sessionCookiesOf(cdp: Cdp, limitMs: Millis): Promise<readonly Cookie[]> {
  const { cookies } = await cdp.send("Storage.getCookies", {}, { limitMs });
  // Set with a time to expire, even the -1 that is told for none, it would have expired.
  return cookies.filter(({ session }) => session).map(({ expires: _expires, ...cookie }) => cookie);
}

/** Of a browser that has ended. What an earlier one has left goes. */
export async function keepCookies(home: Home, cookies: readonly Cookie[]): Promise<void> {
  const path = fileIn(home);
  await rm(path, { recursive: true, force: true });
  if (cookies.length === 0) return;
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    await file.writeFile(JSON.stringify(cookies));
    if (home.uid !== null) await file.chown(home.uid, home.uid);
  } finally {
    await file.close();
  }
}

/** Gives them to the browser that has started there. The file stays as it is: were this start to fail, the next one needs it. */
export async function giveCookies(home: Home, cdp: Cdp): Promise<void> {
  const cookies = await findCookies(fileIn(home));
  if (cookies.length === 0) return;
  // One by one where Chromium refuses all for one of them.
  await cdp.send("Storage.setCookies", { cookies }).catch((error: unknown) => {
    if (!(error instanceof CdpRefused)) throw error;
    return Promise.allSettled(cookies.map((cookie) => cdp.send("Storage.setCookies", { cookies: [cookie] })));
  });
}

/** The file was the browser's while it was packed, so that it may hold anything. */
async function findCookies(path: string): Promise<Cookie[]> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return [];
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink > 1 || found.size > mostBytes) return [];
    const values: unknown = JSON.parse(await file.readFile("utf8"));
    return Array.isArray(values) ? values.filter(isCookie) : [];
  } catch {
    return [];
  } finally {
    await file.close();
  }
}

const isCookie = (value: unknown): value is Cookie =>
  typeof value === "object" && value !== null && "name" in value && typeof value.name === "string" && "value" in value && typeof value.value === "string";
