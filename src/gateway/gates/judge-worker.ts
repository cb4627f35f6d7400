import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { basename } from "node:path";
import { parentPort, type Transferable } from "node:worker_threads";
import { defaultGate } from "./default-gate.js";
import { type JudgedMessage, judgeAndWrite } from "./judge.js";
import type { GateContext } from "./gate.js";

const judgingPriority = 10;

/** The message that judge-threads.ts sends here. */
export interface Task {
  readonly message: Uint8Array;
  readonly context: GateContext;
  /** Somebody listens to what the client does. */
  readonly isObserved: boolean;
}

// The daemon's main thread goes first.
if (process.platform === "linux")
  setPriority(Number(basename(readlinkSync("/proc/thread-self"))), judgingPriority);

parentPort?.on("message", ({ message: { buffer, byteOffset, byteLength }, context, isObserved }: Task) => {
  const message = Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
  const judged = judgeAndWrite(message, { gate: defaultGate, context, isObserved });
  parentPort?.postMessage(judged, transfersOf(judged));
});

function transfersOf(judged: JudgedMessage): Transferable[] {
  const written =
    judged.kind === "command" && judged.judgement.kind === "pass"
      ? judged.judgement.command.written
      : undefined;
  // A small one may lie in the buffer that Node.js shares among small ones, which cannot be given away.
  return written && written.byteLength === written.buffer.byteLength ? [written.buffer as ArrayBuffer] : [];
}
