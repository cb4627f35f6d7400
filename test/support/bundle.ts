import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";

/** The parts of the daemon that run in a test's own process (daemon/daemon.ts). */
const parts = ["config/config", "daemon/roles", "observe/log"];

/** These have native parts or files of their own, or are large and loaded by few. */
const apart = [
  /^(koffi|playwright-core|chromium-bidi)(\/|$)/,
  /^@(mongodb-js|aws-sdk|fastify\/swagger-ui)(\/|$)/,
];

/**
 * Modules look for what lies beside them, and that stays where it was; packages in CommonJS say it otherwise.
 */
const keepPlaces: Plugin = {
  name: "keep-places",
  transform(code, id) {
    const [file, directory] = [id, dirname(id)].map((path) => JSON.stringify(path));
    const kept = code
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      .replaceAll("import.meta.dirname", `${directory}`);
    if (/(?:const|let|var) __(?:dirname|filename)\b/.test(code)) return kept;
    return kept.replaceAll(/\b__dirname\b/g, `${directory}`).replaceAll(/\b__filename\b/g, `${file}`);
  },
};

/**
 * Puts the compiled daemon of a directory into few files: a run starts some three hundred daemons, and each
 * would look for, read and compile 1,500 modules (DECISIONS.md#174).
 */
export async function bundleDaemon(directory: string): Promise<void> {
  const inProcess = join(directory, "src/in-process.js");
  // One module, since which of several is evaluated first would be left to chance.
  await writeFile(inProcess, parts.map((part) => `export * from "./${part}.js";\n`).join(""));
  const bundle = await rolldown({
    input: { "src/main": join(directory, "src/main.js"), "bundled/in-process": inProcess },
    platform: "node",
    external: apart,
    plugins: [keepPlaces],
    logLevel: "silent",
    // Its configuration of TypeScript is none that compiled files have.
    tsconfig: false,
  });
  await bundle.write({
    dir: directory,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "bundled/chunk-[hash].js",
  });
  await bundle.close();
}
