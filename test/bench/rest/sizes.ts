export const nodeCount = 100;
export const poolCount = 10;
export const poolSize = 1000;
/** The pools want more than all nodes together take. */
export const sizeBeyondCapacity = 1200;
export const browsersPerNode = 110;
/** Leases that are held all the while, by nobody who does anything. */
export const leasesPerPool = 20;
/** Of sessions that are over, as many as are kept by default. */
export const tombstoneCount = 100_000;

/** Says which node of the fleet is to drain. */
export const drainChannel = "bench:drain";
