import type { NodeId } from "../../../src/base/ids.js";
import type { NodeFacts } from "../../../src/pool/ports/node-store.js";

/** What a node with room for any number of browsers says at its beats. */
export const nodeFacts = (id: NodeId, over: Partial<NodeFacts> = {}): NodeFacts => ({
  id,
  host: "127.0.0.1",
  port: 1,
  memoryBytes: 2 ** 40,
  maxBrowsers: 1000,
  isDraining: false,
  canLaunch: true,
  engines: ["chromium"],
  ...over,
});
