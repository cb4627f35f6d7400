-- open-pool: a pool is there, and in the project's list of pools, the newest last.
-- KEYS  pools poolOrder
-- ARGV  pool
-- REPLY opened
--- @include base

redis.call("HSET", K.pools, A.pool, "open")
-- What opens a pool again leaves it at its place.
redis.call("ZADD", K.poolOrder, "NX", microseconds(), A.pool)
return plain("opened")
