-- read-pool: read the record of a pool and count its browsers.
-- KEYS  pool launching idle leased resetting waitQueue generationIndex
-- ARGV  fields
-- REPLY pool (JSON {values, counts})
--- @include base

local values = redis.call("HMGET", K.pool, unpack(cjson.decode(A.fields)))
for index, value in ipairs(values) do values[index] = value or "" end
local generation = redis.call("HGET", K.pool, "generation") or "0"
local stale = redis.call("ZCOUNT", K.generationIndex, "-inf", "(" .. generation)
return plain("pool", cjson.encode({ values = values, counts = {
  launching = redis.call("ZCARD", K.launching),
  idle = redis.call("ZCARD", K.idle),
  leased = redis.call("ZCARD", K.leased),
  resetting = redis.call("ZCARD", K.resetting), waiting = redis.call("ZCARD", K.waitQueue), stale = stale,
} }))
