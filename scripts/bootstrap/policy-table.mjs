import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Refusal, say } from "./say.mjs";
import { tools } from "./system.mjs";

const limitMs = 60_000;
const lineLength = 150;
const kinds = ["boolean", "integer", "string", "list", "dictionary"];

/** Commands go to Chromium's file descriptor 3 and answers come from 4, each ended by a zero byte. */
function openPipe({ stdio: [, , , input, output] }) {
  const waiting = new Map();
  let rest = "";
  let last = 0;
  input.on("error", () => {});
  output.setEncoding("utf8").on("data", (text) => {
    const frames = (rest + text).split("\0");
    rest = frames.pop();
    for (const { id, result, error } of frames.map((frame) => JSON.parse(frame)))
      waiting.get(id)?.(error ? { error } : result);
  });
  return (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, (answer) =>
        answer.error ? reject(new Refusal(`${method}: ${answer.error.message}`)) : resolve(answer),
      );
      input.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
    });
}

/**
 * A page of the browser in which expressions are asked again until they give something: it has to load first.
 */
async function openPage(send, url) {
  const { targetId } = await send("Target.createTarget", { url });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  return async (expression) => {
    for (;;) {
      const asked = {
        expression: `(async () => ${expression})().catch(() => undefined)`,
        awaitPromise: true,
        returnByValue: true,
      };
      const { result } = await send("Runtime.evaluate", asked, sessionId);
      if (result.value) return result.value;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
}

/**
 * What chrome://policy shows: the names of all policies, and those that are set, with what is wrong with
 * them.
 */
const shown = `new Promise(async (resolve) => {
  const { addWebUiListener } = await import("chrome://resources/js/cr.js");
  addWebUiListener("policies-updated", (names, values) => resolve({ names: names.chrome.policyNames, set: values.policyGroups.chrome.policies }));
  chrome.send("listenPoliciesUpdates");
})`;

const testPage = `{
  const { loadTimeData } = await import("chrome://resources/js/load_time_data.js");
  return location.href === "chrome://policy/test" && JSON.parse(loadTimeData.getString("initialSchema")).chrome;
}`;

/** The type that Chromium names when it is given a number; a number out of range is of the right type. */
const toldType = (error = "") =>
  /out of range/.test(error) ? "integer" : /xpected:? "?(\w+)/.exec(error)?.[1];

/**
 * chrome://policy/test tells the types of all policies but those that it may not set, such as
 * HomepageLocation. Those are given a number by a policy file, and chrome://policy tells what it expected
 * instead.
 */
async function ask(send, policyFile) {
  const types = await (await openPage(send, "chrome://policy/test"))(testPage);
  const look = await openPage(send, "chrome://policy");
  const untold = (await look(shown)).names.filter((name) => types[name] === undefined);
  writeFileSync(policyFile, JSON.stringify(Object.fromEntries(untold.map((name) => [name, 7]))));
  // Asks only once: a second request ends the first, and the reading takes a while.
  await look('{ chrome.send("reloadPolicies", ["x"]); return true; }');
  const set = await look(`{ const { set } = await ${shown}; return Object.keys(set).length > 0 && set; }`);
  const told = Object.entries(set).map(([name, { error }]) => [name, toldType(error)]);
  return { ...types, ...Object.fromEntries(told.filter(([, type]) => type)) };
}

/** Chromium, with a directory of ours for the one in which it looks for its configuration. */
function spawnChromium(executable, { profile, configuration }) {
  const isRoot = process.getuid?.() === 0;
  const target = executable.includes("google/chrome") ? "/etc/opt/chrome" : "/etc/chromium";
  const apart = [
    ...(isRoot ? [] : ["--user", "--map-root-user"]),
    "--mount",
    "--propagation",
    "private",
    "/bin/sh",
    "-c",
  ];
  const bound = ['mount -n --bind "$0" "$1" && shift && exec "$@"', configuration, target];
  // It opens pages of its own and nothing else; a sandbox is not to be had as root.
  const switches = [
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
  ];
  const args = [...apart, ...bound, executable, ...switches, `--user-data-dir=${profile}`, "about:blank"];
  const env = { ...process.env, TMPDIR: dirname(profile) };
  // A group of its own, so that all its processes can be ended at once.
  return spawn("unshare", args, {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    env,
    detached: true,
  });
}

/** What outlived the browser process would go on writing into the profile while it is removed. */
function endGroup({ pid }) {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Rejects when the Chromium ends, or has not answered in time. */
function failureOf(child) {
  let timer;
  const failed = new Promise((_, reject) => {
    child.once("error", (error) => reject(new Refusal(`unshare: ${error.message}`)));
    child.once("exit", (code) =>
      reject(new Refusal(`Chromium ended with code ${code}; it needs a mount of its own`)),
    );
    timer = setTimeout(
      () => reject(new Refusal(`Chromium did not tell its policies within ${limitMs / 1000} s`)),
      limitMs,
    );
  });
  failed.catch(() => {});
  return { failed, settle: () => clearTimeout(timer) };
}

/**
 * The names and types of the policies that a Chromium knows, with its major version, as that Chromium tells
 * them.
 */
export async function readPolicyTypes(executable) {
  const scratch = mkdtempSync(join(tmpdir(), "remuda-policy-table-"));
  const places = { profile: join(scratch, "profile"), configuration: join(scratch, "configuration") };
  const managed = join(places.configuration, "policies/managed");
  mkdirSync(managed, { recursive: true });
  const child = spawnChromium(executable, places);
  const closed = new Promise((resolve) => child.once("close", resolve));
  const { failed, settle } = failureOf(child);
  try {
    const send = openPipe(child);
    const asked = Promise.all([send("Browser.getVersion"), ask(send, join(managed, "p.json"))]);
    asked.catch(() => {});
    const [{ product }, types] = await Promise.race([asked, failed]);
    return { majorVersion: Number(/\/(\d+)/.exec(product)[1]), types };
  } finally {
    settle();
    endGroup(child);
    await closed;
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}

/** Words in lines of a source, as many as fit. */
function linesOf(words) {
  const lines = [""];
  for (const word of words) {
    if (lines.at(-1).length + word.length > lineLength) lines.push("");
    lines[lines.length - 1] += `${lines.at(-1) === "" ? "    " : " "}${word}`;
  }
  return lines.join("\n");
}

/** The source of src/spec/policies/policy-table.ts. */
export function sourceOf({ majorVersion, types }) {
  const strange = Object.entries(types).filter(
    ([name, kind]) => !kinds.includes(kind) || !/^\w+$/.test(name),
  );
  if (strange.length > 0)
    throw new Refusal(`Chromium names a policy or type that is none: ${JSON.stringify(strange)}`);
  const namesOf = (kind) =>
    Object.keys(types)
      .filter((name) => types[name] === kind)
      .sort();
  const entries = kinds.map((kind) => `  ${kind}: words(\`\n${linesOf(namesOf(kind))}\n  \`),`);
  return `// Written by \`node scripts/bootstrap.mjs policy-table\` from what Chromium ${majorVersion} says of itself; not to be
// changed by hand.

const words = (text: string): readonly string[] => text.trim().split(/\\s+/);

/** The names of the enterprise policies that Chromium knows, by the type of their values. */
export const policyNames = {
${entries.join("\n")}
} as const;
`;
}

/** Reads the table anew from the installed Chromium, or from the one that is named. */
export async function writePolicyTable(root, [named]) {
  const executable = named ?? tools.chromium.places.find((place) => existsSync(place));
  if (!executable)
    throw new Refusal(
      "No Chromium is installed; name one: node scripts/bootstrap.mjs policy-table /path/to/chromium",
    );
  const read = await readPolicyTypes(executable);
  writeFileSync(join(root, "src/spec/policies/policy-table.ts"), sourceOf(read));
  say(
    `src/spec/policies/policy-table.ts: ${Object.keys(read.types).length} policies of Chromium ${read.majorVersion} written`,
  );
  return 0;
}
