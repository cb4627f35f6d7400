-- rejoin: put callers who wait back in line, each at its rank, whom this pool has taken for gone while their
-- control stood still.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps
-- ARGV  waiting eventsKept controlLostMs provisionalMs
-- REPLY rejoined (JSON list, of each a word: waiting, held, superseded, over, deleted)
-- `waiting` is a JSON list of waiters as they were stored. `held`: it has a browser; `superseded`: another
-- connection has its place; `over`: no place is remembered, so that it may have been served; `deleted`: the
-- pool is. Not remembered for repeats: a second time they are in line.
--- @include grants

local terms, words = poolTerms(), {}

local function answerFor(waiter)
  if redis.call("HEXISTS", K.leases, waiter.lease) == 1 then return "held" end
  if terms.state ~= "open" then return "deleted" end
  local text = redis.call("HGET", K.waiterRecords, waiter.id)
  if not text then return "over" end
  beatOf(waiter.control)
  local standing = cjson.decode(text)
  if standing.connection ~= waiter.connection then return "superseded" end
  standing.detachedAt, standing.lostAt = nil, nil
  redis.call("ZADD", K.waitQueue, standing.rank or nextNumber("rank"), standing.id)
  redis.call("HSET", K.waiterRecords, standing.id, cjson.encode(standing))
  return "waiting"
end

for place, waiter in ipairs(cjson.decode(A.waiting)) do words[place] = answerFor(waiter) end
if terms.state == "open" then dispatch(terms) end
return { "rejoined", cjson.encode(words), tostring(now), effectsText() }
