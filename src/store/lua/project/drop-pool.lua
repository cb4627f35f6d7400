-- drop-pool: a deleted pool is in no list any more; its size and its name, where it has one, are free.
-- KEYS  pools sizes names
-- ARGV  pool field
-- REPLY dropped
--- @include base

redis.call("HSET", K.pools, A.pool, "closing")
redis.call("HDEL", K.sizes, A.pool)
local text = A.field ~= "" and redis.call("HGET", K.names, A.field)
if text and cjson.decode(text).owner == A.pool then redis.call("HDEL", K.names, A.field) end
return plain("dropped")
