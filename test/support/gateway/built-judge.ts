import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compiled } from "../compiled.js";

/** judge-worker.js: threads of Node.js 20 run no TypeScript. */
export const builtJudge = (): URL => pathToFileURL(join(compiled, "src/gateway/gates/judge-worker.js"));
