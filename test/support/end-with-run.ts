// A worker whose vitest was killed would go on until it next has something to tell it. What it has started
// ends with it (bound.ts).
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
