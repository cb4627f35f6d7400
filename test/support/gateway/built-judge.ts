import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compiled } from "../compiled.js";

const built = (path: string): URL => pathToFileURL(join(compiled, path));

/** judge-worker.js: threads of Node.js 20 run no TypeScript. */
export const builtJudge = (): URL => built("src/gateway/gates/judge-worker.js");
/** mapper-process.js, which is a process of its own. */
export const builtMapper = (): URL => built("src/gateway/bidi/mapper-process.js");
