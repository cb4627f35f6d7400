import { done } from "../../../src/base/errors.js";
import type { NodeId } from "../../../src/base/ids.js";
import type { LoadedNode, NodeOperations } from "../../../src/pool/node-operations.js";

export const node: LoadedNode = {
  id: "node-1" as NodeId,
  host: "10.0.0.1",
  port: 4700,
  memoryBytes: 2 ** 34,
  maxBrowsers: 50,
  isDraining: false,
  isStopping: false,
  isLate: false,
  canLaunch: true,
  engines: ["chromium"],
  zone: "north",
  labels: { disk: "fast" },
  failing: { failures: 2, error: "no display" },
  browsers: 3,
};

type Run = <Result>(operation: string, args: readonly unknown[], usual: Result) => Promise<Result>;

export const recordedNodes = (run: Run): NodeOperations => ({
  all: (...args) => run("nodes.all", args, [node]),
  drain: (...args) =>
    run("nodes.drain", args, done({ ...node, isDraining: true, drainsUntil: 1_700_000_000_000 })),
  endDrain: (...args) => run("nodes.endDrain", args, done(null)),
});
