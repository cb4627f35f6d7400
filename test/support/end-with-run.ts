// A worker whose vitest was killed would go on until it next has something to tell it. What it has started
// ends with it (bound.ts).
function endWithRun(): void {
  process.kill(process.pid, "SIGKILL");
}

// Files that share a worker come here one after the other.
if (!process.listeners("disconnect").some(({ name }) => name === endWithRun.name))
  process.once("disconnect", endWithRun);
