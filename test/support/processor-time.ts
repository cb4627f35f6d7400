/**
 * The processor time that this process spends on it: unlike the time on the wall it does not grow with the
 * load.
 */
export async function processorMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
