-- release-warm: end a lease whose browser goes on, where a release has nothing else to do (warm): it is idle
-- again, or its node is to fence and reset it.
-- KEYS  pool browsers idle leased resetting leases waitQueue provisional endedLeases events nodeStamps answer
-- ARGV  name browser lease request maxLeases eventsKept
-- REPLY released (the request), other
-- Arguments and `answer` are those of release, by which repeats are answered; `lease` is never empty.
--- @judged
--- @include lease/warm

-- One that is leased has not been discarded.
local function move(browser, to, why, score)
  redis.call("ZREM", K.leased, browser.id)
  event(browser, "leased", to, why)
  if to == "idle" then return enter(browser, to, K.idle, idleScore(browser)) end
  return enter(browser, to, K.resetting, score)
end
--- @include lease/leases

if redis.call("EXISTS", K.answer) == 1 then return plain("other") end

local name, state, reset, size, network, closed, replicationId, checkedAt =
  unpack(redis.call("HMGET", K.pool, "name", "state", "reset", "size", "networkGeneration", "closed",
    "replicationId", "serverCheckedAt"))
-- What stands by, and sessions on demand, have no size.
if not size or reset == "relaunch" or A.name ~= "" and name ~= A.name then return plain("other") end
local browser = read(A.browser)
local lease = browser and browser.lease
if not lease or lease.id ~= A.lease then return plain("other") end
if lease.altered or lease.profile or browser.uploaded or browser.replaceable then return plain("other") end
if A.maxLeases ~= "" and browser.served + 1 >= tonumber(A.maxLeases) then return plain("other") end

-- Whether it is idle as it is, and nobody waits for it.
local function mayBeIdle()
  return browser.networkGeneration == tonumber(network) and staysIdle(state, closed, size)
    and isServerKnown(replicationId, checkedAt)
end
local isUsed = lease.registrations > 0 or lease.touched or lease.startUrl
if not isUsed and not mayBeIdle() then return plain("other") end

isEndAnswered, answerMs = true, endedLeaseMs
if isUsed then
  fence(browser, "released", reset)
else
  dropLease(browser, "released")
  move(browser, "idle", "released")
end
return finish("released", A.request)
