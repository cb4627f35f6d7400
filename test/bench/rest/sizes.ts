export const nodeCount = 100;
export const browsersPerNode = 110;
/** Leases that are held all the while, by nobody who does anything. */
export const leaseCount = 200;
/** The number of sessions that are over: as many as are kept by default. */
export const tombstoneCount = 100_000;

/** The same number of browsers, in few pools or in many. */
export interface Shape {
  readonly pools: number;
  readonly size: number;
  /** The pools want more than all nodes together take. */
  readonly sizeBeyondCapacity: number;
  /** Whether it is held to the goal. */
  readonly hasGoal: boolean;
}
export const fewPools: Shape = { pools: 10, size: 1000, sizeBeyondCapacity: 1200, hasGoal: true };
/** Every pool is looked at every second, and each node has browsers of a hundred of them. */
export const manyPools: Shape = { pools: 1000, size: 10, sizeBeyondCapacity: 12, hasGoal: false };

/** Says which node of the fleet is to drain. */
export const drainChannel = "bench:drain";
