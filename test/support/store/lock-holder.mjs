// A process that holds the lock of a directory and is there to be killed: `lock-holder.mjs <compiled sources>
// <directory>`.
import { join } from "node:path";
const [compiled, directory] = process.argv.slice(2);
const { lockDirectory } = await import(join(compiled, "src/store/private/directory-lock.js"));
const { systemClock } = await import(join(compiled, "src/base/clock.js"));
const lock = await lockDirectory(directory, systemClock);
// Keeps the process and, by naming the lock, its file open: an unused handle is closed when it is collected.
process.on("message", () => lock.release());
process.send(lock.kind);
