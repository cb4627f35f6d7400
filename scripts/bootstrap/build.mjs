import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { Refusal, say } from "./say.mjs";
import { runQuietly } from "./spawn.mjs";

/** What is built from which folders to where. */
const targets = {
  daemon: { project: "src/tsconfig.json", folders: ["src"], output: "dist" },
  bench: {
    project: "test/bench/tsconfig.json",
    folders: ["src", "test/bench", "test/support"],
    output: "dist-bench",
  },
  prove: {
    project: "test/proof/tsconfig.json",
    folders: ["src", "test/proof", "test/simulation", "test/bench", "test/support"],
    output: "dist-prove",
  },
};

/** The files below a folder, by their paths from the root. */
const filesOf = (root, folder) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();

/**
 * A digest of everything the build is made from: contents, so that neither clocks nor checkouts can deceive
 * it.
 */
export function digestOf(root, { project, folders }) {
  const digest = createHash("sha256");
  const files = [
    "tsconfig.json",
    "src/tsconfig.json",
    project,
    "package-lock.json",
    ...folders.flatMap((folder) => filesOf(root, folder)),
  ];
  for (const file of files)
    digest
      .update(`${file.replaceAll(sep, "/")}\0`)
      .update(readFileSync(join(root, file)))
      .update("\0");
  return digest.digest("hex");
}

const findStamp = (output) =>
  existsSync(join(output, "stamp")) ? readFileSync(join(output, "stamp"), "utf8") : undefined;

async function compile(root, project, directory) {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { code, output } = await runQuietly(process.execPath, [tsc, "-p", project, "--outDir", directory], {
    cwd: root,
  });
  if (code !== 0) throw new Refusal(`The sources do not compile:\n${output.trim()}`);
}

/** tsc leaves aside what is not TypeScript: scripts for Redis, pages. */
function copyOthers(root, folders, directory) {
  const others = folders
    .flatMap((folder) => filesOf(root, folder))
    .filter((path) => !/\.[cm]?ts$|tsconfig\.json$/.test(path));
  for (const path of others) cpSync(join(root, path), join(directory, path));
}

const isRunning = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Directories of builds that were killed. */
function removeAbandoned(root) {
  const abandoned = readdirSync(root).filter(
    (name) => /^dist-\d+$/.test(name) && !isRunning(Number(name.slice(5))),
  );
  for (const name of abandoned) rmSync(join(root, name), { recursive: true, force: true });
}

/** Put in place whole, so that two builds at once, or one that fails, leave nothing half done. */
function putInPlace(directory, output) {
  const old = `${directory}-old`;
  if (existsSync(output)) renameSync(output, old);
  renameSync(directory, output);
  rmSync(old, { recursive: true, force: true });
}

/** Builds a target when its sources have changed; gives the directory that holds it. */
export async function build(root, name) {
  const target = targets[name];
  const output = join(root, target.output);
  const digest = digestOf(root, target);
  if (findStamp(output) === digest) return output;
  say(`building ${name}`);
  removeAbandoned(root);
  const directory = join(root, `dist-${process.pid}`);
  rmSync(directory, { recursive: true, force: true });
  try {
    await compile(root, target.project, directory);
    copyOthers(root, target.folders, directory);
    writeFileSync(join(directory, "stamp"), digest);
    putInPlace(directory, output);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return output;
}
