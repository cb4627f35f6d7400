/** How large the simulated fleet is; each number has a variable of the environment. */
export interface FleetSize {
  readonly nodes: number;
  readonly browsers: number;
  readonly pools: number;
  /** Browsers of the one large pool, which are among `browsers`. */
  readonly largest: number;
  /** Browsers that end and are replaced each second. */
  readonly endsPerSecond: number;
  readonly lostNodes: number;
  readonly forMs: number;
}

/** The small pool beside which the large one is measured. */
export const smallest = 10;

const numberOf = (name: string, fallback: number): number => Number(process.env[name] ?? fallback);

export function fleetSize(): FleetSize {
  const nodes = numberOf("SCALE_NODES", 1000);
  const browsers = numberOf("SCALE_BROWSERS", nodes * 100);
  return {
    nodes,
    browsers,
    pools: numberOf("SCALE_POOLS", nodes * 2),
    largest: numberOf("SCALE_LARGEST", browsers / 2),
    endsPerSecond: numberOf("SCALE_ENDS", browsers / 100),
    lostNodes: numberOf("SCALE_LOST", nodes / 10),
    forMs: numberOf("SCALE_SECONDS", 30) * 1000,
  };
}
