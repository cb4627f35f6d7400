-- pool: read the record of a pool and count its browsers.
-- KEYS  pool browsers launching idle leased resetting waiters
-- ARGV  fields
-- REPLY pool (JSON {values, counts})
--- @include base

local values = redis.call("HMGET", K.pool, unpack(cjson.decode(A.fields)))
for index, value in ipairs(values) do values[index] = value or "" end
local generation, stale = tonumber(redis.call("HGET", K.pool, "generation") or "0"), 0
if generation > 1 then
  for _, text in ipairs(redis.call("HVALS", K.browsers)) do
    local browser = cjson.decode(text)
    if browser.state ~= "retiring" and browser.generation < generation then stale = stale + 1 end
  end
end
return plain("pool", cjson.encode({ values = values, counts = {
  launching = redis.call("ZCARD", K.launching), idle = redis.call("ZCARD", K.idle), leased = redis.call("ZCARD", K.leased),
  resetting = redis.call("ZCARD", K.resetting), waiting = redis.call("ZCARD", K.waiters), stale = stale,
} }))
