/**
 * The least that Remuda's user needs, as docs/deployment.md shows it: what every Redis takes, what a Redis
 * Cluster takes besides, and how a daemon sees whether a vault's change is on disk.
 */
export const leastRights =
  "resetkeys ~remuda:* resetchannels &remuda:* -@all +@read +@write +@connection " +
  "+@pubsub +@scripting +@transaction -@dangerous +info +role +time +client|kill";
export const clusterRights = "+cluster|slots +cluster|info";
export const vaultRights = "+config|get";
/** What a user of the sentinels needs. */
export const sentinelRights =
  "resetkeys resetchannels -@all +@connection +info +sentinel|get-master-addr-by-name +sentinel|sentinels";
