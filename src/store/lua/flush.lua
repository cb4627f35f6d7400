-- flush: retire every idle browser; they are replaced at the fill rate.
-- KEYS  pool browsers launching idle leased resetting retiring leases provisional worn graves spent events answer
-- ARGV  why eventsKept
-- REPLY flushed (how many), missing
--- @include ends

local first = again()
if first then return first end

if redis.call("HGET", K.pool, "state") ~= "open" then return plain("missing") end
local ids = redis.call("ZRANGE", K.idle, 0, -1)
for _, id in ipairs(ids) do retire(read(id), A.why) end
return finish("flushed", tostring(#ids))
