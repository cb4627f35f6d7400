-- acquire-warm: lend the browser that is first in line, where an acquire has nothing else to do (warm).
-- KEYS  pool browsers idle leased leases waitQueue provisional controls endedLeases events nodeStamps answer
-- ARGV  pool name waiter lease provisionalMs controlLostMs eventsKept
-- REPLY granted (the browser), over, other
-- Arguments and `answer` are those of acquire. No answer is kept here: a repeat finds the lease, or that it
-- has ended.
--- @judged
--- @include lease/warm

-- One that is first in line has not been discarded.
local function move(browser, to, why, score)
  redis.call("ZREM", K.idle, browser.id)
  event(browser, "idle", to, why)
  return enter(browser, to, K.leased, score)
end
--- @include lease/leases

local lent = lentBefore(A.lease)
if lent then return lent end
if redis.call("ZSCORE", K.endedLeases, A.lease) then return plain("over") end
if redis.call("EXISTS", K.answer) == 1 or redis.call("ZCARD", K.waitQueue) > 0 then return plain("other") end

local id, name, state, unsupported, timeoutSeconds, network, closed, replicationId, checkedAt =
  unpack(redis.call("HMGET", K.pool, "id", "name", "state", "unsupported", "timeoutSeconds",
    "networkGeneration", "closed", "replicationId", "serverCheckedAt"))
local isMeant = state == "open" and id == A.pool and (A.name == "" or name == A.name)
if not isMeant or unsupported ~= "" or closed then return plain("other") end
local first = redis.call("ZRANGE", K.idle, "0", "0")[1]
local browser = first and read(first)
if not browser or browser.networkGeneration ~= tonumber(network) then return plain("other") end
if not isServerKnown(replicationId, checkedAt) then return plain("other") end

local waiter = cjson.decode(A.waiter)
beatOf(waiter.control)
local terms = { name = name or nil, timeoutSeconds = tonumber(timeoutSeconds) }
return plain("granted", recordLease(browser, waiter, terms))
