-- drop-pool: a deleted pool is in no list any more; its name, where it has one, is free.
-- KEYS  pools poolOrder names
-- ARGV  pool field
-- REPLY dropped
--- @include base

redis.call("HSET", K.pools, A.pool, "closing")
redis.call("ZREM", K.poolOrder, A.pool)
local text = A.field ~= "" and redis.call("HGET", K.names, A.field)
if text and cjson.decode(text).owner == A.pool then redis.call("HDEL", K.names, A.field) end
return plain("dropped")
