import { readdirSync } from "node:fs";
import { getPriority } from "node:os";

/**
 * The slice limits how long a running thread may keep another waiting that wakes up: the shorter slice of the
 * two counts (EEVDF, Linux 6.12). A command changes threads some ten times on its way, and would wait the
 * usual 1 to 3 ms each time; a tenth of a ms is the least that the kernel takes.
 */
const sliceNanos = 200_000n;

/** The numbers of the system call sched_setattr(2), from the kernel's headers. */
const numbers: Readonly<Record<string, number>> = { x64: 314, arm64: 274 };
const attributeBytes = 48;
const keepsPolicy = 0x08n;

type SetAttributes = (
  ...call: readonly [number: number, thread: number, attributes: Buffer, flags: number]
) => number;

/**
 * Gives this process, and what it starts from here on (its private Redis, browsers), short time slices; any
 * user may. Where koffi or the kernel has none, they stay as they are: an older kernel takes the call and
 * leaves it at that.
 */
export async function shortenSlices(): Promise<boolean> {
  const number = process.platform === "linux" ? numbers[process.arch] : undefined;
  if (number === undefined) return false;
  const setAttributes = await import("koffi").then(
    ({ default: koffi }) =>
      koffi
        .load(null)
        .func(
          "long syscall(long number, int thread, void *attributes, unsigned int flags)",
        ) as unknown as SetAttributes,
    () => undefined,
  );
  const threads = readdirSync("/proc/self/task").map(Number);
  return (
    setAttributes !== undefined &&
    threads.map((thread) => setAttributes(number, thread, attributesOf(thread), 0) === 0).every(Boolean)
  );
}

/** `struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period. */
function attributesOf(thread: number): Buffer {
  const attributes = Buffer.alloc(attributeBytes);
  attributes.writeUInt32LE(attributeBytes, 0);
  attributes.writeBigUInt64LE(keepsPolicy, 8);
  attributes.writeInt32LE(getPriority(thread), 16);
  attributes.writeBigUInt64LE(sliceNanos, 24);
  return attributes;
}
