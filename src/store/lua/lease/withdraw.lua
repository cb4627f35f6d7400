-- withdraw: the caller's time is over or its connection has gone; a keyed one keeps its place for a while.
-- KEYS  browsers leases waitQueue waiterRecords answer
-- ARGV  waiter connection lease
-- REPLY withdrawn, kept, superseded (another connection has the place), granted (the browser, lent
--       meanwhile), unknown
--- @include changes
--- @include browser/browsers

local first = earlierAnswer()
if first then return first end

local text = redis.call("HGET", K.waiterRecords, A.waiter)
if not text then
  local held = redis.call("HGET", K.leases, A.lease)
  local browser = held and read(held)
  if not browser then return plain("unknown") end
  if browser.lease.connection ~= A.connection then return plain("superseded") end
  return plain("granted", cjson.encode(browser))
end
local waiter = cjson.decode(text)
if waiter.connection ~= A.connection then return plain("superseded") end
if waiter.key then
  waiter.detachedAt = now
  redis.call("HSET", K.waiterRecords, waiter.id, cjson.encode(waiter))
  return finish("kept")
end
redis.call("ZREM", K.waitQueue, waiter.id)
redis.call("HDEL", K.waiterRecords, waiter.id)
if waiter.name then addEffect("names", { name = waiter.name, owner = waiter.lease }) end
return finish("withdrawn")
