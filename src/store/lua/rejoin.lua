-- rejoin: put callers who wait back in line, each at its rank, whom this pool has taken for gone: their control stood still, or Redis has lost them.
-- KEYS  pool browsers launching idle leased resetting retiring leases waiters waiting provisional controls worn graves spent events places generations ages served changed answer
-- ARGV  waiting eventsKept controlLostMs provisionalMs
-- REPLY rejoined (JSON list, of each: waiting; held, a browser; superseded, another connection has the place; deleted, the pool)
-- `waiting` is a JSON list of waiters as they were stored. Not remembered for repeats: a second time they are in line.
--- @include grants

local terms, words = poolTerms(), {}

local function wordFor(waiter)
  if redis.call("HEXISTS", K.leases, waiter.lease) == 1 then return "held" end
  if terms.state ~= "open" then return "deleted" end
  beatOf(waiter.control)
  local text = redis.call("HGET", K.waiting, waiter.id)
  local standing = text and cjson.decode(text) or waiter
  if standing.connection ~= waiter.connection then return "superseded" end
  standing.detachedAt = nil
  redis.call("ZADD", K.waiters, standing.rank or nextNumber("rank"), standing.id)
  redis.call("HSET", K.waiting, standing.id, cjson.encode(standing))
  return "waiting"
end

for place, waiter in ipairs(cjson.decode(A.waiting)) do words[place] = wordFor(waiter) end
if terms.state == "open" then dispatch(terms) end
return { "rejoined", cjson.encode(words), tostring(now), effectsText() }
