-- delete-pool: end a pool: leases too where `force` says so; waiters are told at once.
-- KEYS  pool templates browsers launching idle leased resetting retiring leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  force eventsKept
-- REPLY deleted, leased (some are, and no force), missing
--- @include endings
--- @include removal

local first = earlierAnswer()
if first then return first end

if redis.call("HGET", K.pool, "state") ~= "open" then return plain("missing") end
if A.force ~= "1" and redis.call("ZCARD", K.leased) > 0 then return plain("leased") end
redis.call("HSET", K.pool, "state", "deleted")
for _, id in ipairs(redis.call("ZRANGE", K.waitQueue, 0, -1)) do
  local text = redis.call("HGET", K.waiterRecords, id)
  local waiter = text and cjson.decode(text)
  if waiter then
    if waiter.name then addEffect("names", { name = waiter.name, owner = waiter.lease }) end
    publish("remuda:control:" .. waiter.control, {
      kind = "deleted", waiter = waiter.id, connection = waiter.connection,
    })
  end
end
redis.call("DEL", K.waitQueue, K.waiterRecords)
for _, key in ipairs({ K.launching, K.idle, K.leased, K.resetting }) do
  for _, id in ipairs(redis.call("ZRANGE", key, 0, -1)) do retire(read(id), "pool_deleted") end
end
sweepPool()
return finish("deleted")
