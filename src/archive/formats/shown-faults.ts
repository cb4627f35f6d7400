const maxFaults = 20;
const maxLength = 300;

/**
 * Keeps as many faults as a person reads, each cut to a line or two, since they quote whoever sent the
 * archive.
 */
export function shownFaults(faults: readonly string[]): readonly string[] {
  const told = faults
    .slice(0, maxFaults)
    .map((fault) => (fault.length > maxLength ? `${fault.slice(0, maxLength)}…` : fault));
  return faults.length > maxFaults ? [...told, `${faults.length - maxFaults} more faults`] : told;
}
