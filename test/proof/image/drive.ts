import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";
import { factOf, pidsNow } from "../isolation/programs.js";
import type { Deployed } from "./overlay.js";

const limitMs = 120_000;

/** What one driven page has shown. */
export interface Driven {
  readonly rung: string;
  readonly network: string;
  readonly hasSandbox: boolean;
  readonly uid: number | undefined;
  readonly title: string;
  /** An address that no rule opens was refused. */
  readonly isDenied: boolean;
  /** A filter of system calls lies on each renderer, and none says `--no-sandbox`. */
  readonly isRendererFiltered: boolean;
  readonly pictureBytes: number;
  readonly zombies: number;
}

interface Session {
  readonly session_id: string;
  readonly cdp_ws_url: string;
  readonly isolation?: {
    readonly rung?: string;
    readonly network?: string;
    readonly sandbox?: string;
    readonly uid?: number;
  };
}

async function call({ url, key }: Deployed, operation: string, body?: object): Promise<string> {
  const [method = "", path = ""] = operation.split(" ");
  const response = await fetch(url + path, {
    method,
    signal: AbortSignal.timeout(limitMs),
    headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${operation}: ${response.status} ${text.slice(0, 500)}`);
  return text;
}

/** Creates a session by the control, drives a page of it over CDP, and looks at its processes meanwhile. */
export async function drive(deployed: Deployed, allowed: string, denied: string): Promise<Driven> {
  const asked = { headless: true, memory: "1GiB", timeout_seconds: 600 };
  const session = JSON.parse(await call(deployed, "POST /browsers", asked)) as Session;
  const browser = await chromium.connectOverCDP(session.cdp_ws_url, { timeout: limitMs });
  try {
    const page = browser.contexts()[0]?.pages()[0];
    if (!page) throw new Error("the browser has no page");
    await page.goto(allowed, { timeout: limitMs });
    const title = await page.title();
    const picture = await page.screenshot({ timeout: limitMs });
    const isRendererFiltered = await areFiltered(await renderersOf(await deployed.node.pid()));
    const isDenied = await page.goto(denied, { timeout: limitMs }).then(
      (response) => response?.status() === 403,
      () => true,
    );
    const { rung = "", network = "", sandbox = "none", uid } = session.isolation ?? {};
    return {
      rung,
      network,
      uid,
      title,
      isDenied,
      isRendererFiltered,
      hasSandbox: sandbox === "namespace",
      pictureBytes: picture.length,
      zombies: await zombiesOf(await deployed.node.pid()),
    };
  } finally {
    await browser.close();
    await call(deployed, `DELETE /browsers/${session.session_id}`);
  }
}

const statusOf = (pid: number, field: string): Promise<string> =>
  factOf(pid, "status").then((text) => new RegExp(`^${field}:\\s*(.*)$`, "m").exec(text)?.[1] ?? "");

/** Every process below the pod's first. */
async function processesOf(first: number): Promise<number[]> {
  const parents = new Map(
    await Promise.all(
      (await pidsNow()).map(async (pid) => [pid, Number(await statusOf(pid, "PPid"))] as const),
    ),
  );
  const isBelow = (pid: number): boolean => {
    let at: number | undefined = pid;
    while (at !== undefined && at !== first) at = parents.get(at);
    return at === first;
  };
  return [...parents.keys()].filter(isBelow);
}

async function renderersOf(first: number): Promise<number[]> {
  const found = await Promise.all(
    (await processesOf(first)).map(async (pid) =>
      (await factOf(pid, "cmdline")).includes("--type=renderer") ? [pid] : [],
    ),
  );
  return found.flat();
}

/** Chromium's sandbox lays a filter of system calls on each renderer. */
async function areFiltered(renderers: readonly number[]): Promise<boolean> {
  const each = await Promise.all(
    renderers.map(
      async (pid) =>
        (await statusOf(pid, "Seccomp")) === "2" && !(await factOf(pid, "cmdline")).includes("--no-sandbox"),
    ),
  );
  return each.length > 0 && each.every(Boolean);
}

async function zombiesOf(first: number): Promise<number> {
  const states = await Promise.all((await processesOf(first)).map((pid) => statusOf(pid, "State")));
  return states.filter((state) => state.startsWith("Z")).length;
}

/** What the kernel says of the pod's daemon. */
export async function standingOf({ node }: Deployed): Promise<Readonly<Record<string, string>>> {
  const pid = await node.pid();
  const [uid = ""] = (await statusOf(pid, "Uid")).split(/\s/);
  const mounts = await readFile(`/proc/${pid}/mountinfo`, "utf8");
  const root = mounts.split("\n").find((line) => line.split(" ")[4] === "/") ?? "";
  return {
    uid,
    isRootReadOnly: String(/ ro[, ]/.test(root)),
    noNewPrivileges: await statusOf(pid, "NoNewPrivs"),
    capabilities: await statusOf(pid, "CapBnd"),
    seccomp: await statusOf(pid, "Seccomp"),
    first: (await factOf(pid, "cmdline")).split("\0")[0] ?? "",
  };
}
