/**
 * A command that the kernel kills when the thread that started it ends, however that ends: what a killed test
 * run had started does not outlive it. It stands behind whatever changes the user, since the kernel then
 * forgets the signal (prctl(2)).
 */
export const bound = (...command: readonly string[]): readonly string[] =>
  process.platform === "linux" ? ["setpriv", "--pdeathsig", "SIGKILL", "--", ...command] : command;
