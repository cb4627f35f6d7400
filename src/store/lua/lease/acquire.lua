-- acquire: lend the best idle browser to the caller, or put the caller in the queue.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer idempotency
-- ARGV  pool name waiter lease body keepMs maxWaiters mayWait isRepeatOnly provisionalMs
--       controlLostMs eventsKept
-- REPLY granted (the browser), waiting (the waiter), none, full, missing, unsupported (the fields), mismatch,
--       over
-- `waiter` is JSON {id, lease, control, connection, key?, name?, tags?, startUrl?, telemetry?, trace?,
-- protectFilled?}, and `lease` its lease; `body` a digest of the request's body, empty without a key. `name`
-- is what the caller calls the pool by, empty where that is its id: a pool that was renamed is missing.
-- `isRepeatOnly` is set where only what the key was given before is answered.
--- @judged
--- @include grants
--- @include repeats

local first = answeredBefore()
if first then return first end
local lent = lentBefore(A.lease)
if lent then return lent end

local terms = poolTerms()
if terms.state ~= "open" or terms.id ~= A.pool or A.name ~= "" and terms.name ~= A.name then
  return plain("missing")
end

local waiter = cjson.decode(A.waiter)
beatOf(waiter.control)
local answered = answerRepeat(waiter, function(place)
  takeOver(place, waiter)
  dispatch(terms)
  local granted = redis.call("HGET", K.leases, place.lease)
  if granted then return grant(redis.call("HGET", K.browsers, granted), place.lease) end
  return finish("waiting", cjson.encode(place))
end)
if answered then return answered end
if A.isRepeatOnly == "1" then return plain("none") end
if terms.unsupported ~= "" then return plain("unsupported", terms.unsupported) end

if redis.call("ZCARD", K.waitQueue) > 0 then dispatch(terms) end
local browser = takeIdle(terms)
if browser then
  remember(waiter)
  return grant(recordLease(browser, waiter, terms), waiter.lease)
end
if A.mayWait == "0" then return finish("none") end
if redis.call("ZCARD", K.waitQueue) >= tonumber(A.maxWaiters) then return finish("full") end
remember(waiter)
-- Its control is told the rank, and puts the waiter back there where the place gets lost.
waiter.rank = nextNumber("rank")
redis.call("ZADD", K.waitQueue, waiter.rank, waiter.id)
redis.call("HSET", K.waiterRecords, waiter.id, cjson.encode(waiter))
return finish("waiting", cjson.encode(waiter))
