-- flush: retire idle browsers, all or those claimed before an instant; they are replaced at the fill rate.
-- KEYS  pool browsers launching idle leased resetting retiring leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  why before eventsKept
-- REPLY flushed (how many), missing
-- `before` is an instant of ours, at which the pool's profile was saved, or empty.
--- @include endings

local first = earlierAnswer()
if first then return first end

if redis.call("HGET", K.pool, "state") ~= "open" then return plain("missing") end
local before, flushed = tonumber(A.before), 0
-- Where the pool came to follow a profile only after that, nothing of it was updated since.
if before and before <= (tonumber(redis.call("HGET", K.pool, "refreshedFrom")) or 0) then
  return finish("flushed", "0")
end
-- The same save is asked for again and again until all browsers that are older are gone.
if before and before <= (tonumber(redis.call("HGET", K.pool, "refreshedTo")) or 0) then
  return plain("flushed", "0")
end
for _, id in ipairs(redis.call("ZRANGE", K.idle, 0, -1)) do
  local browser = read(id)
  if not before or browser.createdAt < before then
    retire(browser, A.why)
    flushed = flushed + 1
  end
end
local function isAnyOlder(key)
  for _, id in ipairs(redis.call("ZRANGE", key, 0, -1)) do
    if read(id).createdAt < before then return true end
  end
end
-- Leased browsers go by their age.
local function isOneInUse()
  return redis.call("ZCOUNT", K.leased, "-inf", "(" .. before) > 0
    or isAnyOlder(K.launching)
    or isAnyOlder(K.resetting)
end
if before and not isOneInUse() then redis.call("HSET", K.pool, "refreshedTo", before) end
return finish("flushed", tostring(flushed))
