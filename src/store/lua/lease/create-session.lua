-- create-session: claim the launch of an on-demand browser for a caller who waits for it; or another launch
-- for a caller whose first has failed.
-- KEYS  pool templates browsers launching leases waiterRecords provisional controls endedLeases events
--       nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps answer idempotency
-- ARGV  browser waiter config body keepMs claimMs provisionalMs eventsKept most isRelaunch reservedUntil
-- REPLY claimed (JSON {browser, waiter, lease}), waiting (the waiter; its browser is still launching),
--       granted (the browser), mismatch, over, full (as many sessions as may be, or their reservation is
--       void), none (no room), superseded (the place is another connection's, or was given up)
-- `browser` and `waiter` are JSON; the waiter is bound to the browser and is in no queue. `browser` is empty
-- where no node has room: then only a repeat is answered. `isRelaunch` is set for a waiter whose launch has
-- failed and whose record is still there. `reservedUntil`: when the caller's reservation of a session becomes
-- void, empty without one.
--- @include repeats
--- @include events
--- @include index
--- @include claims

local first = answeredBefore()
if first then return first end

local waiter = cjson.decode(A.waiter)
redis.call("HSET", K.controls, waiter.control, now)

local function claimFor(place)
  if A.browser == "" then return plain("none") end
  redis.call("HSETNX", K.pool, "kind", "on-demand")
  redis.call("HSET", K.pool, "state", "open", "networkGeneration", 1)
  local browser = cjson.decode(A.browser)
  browser.state, browser.since, browser.createdAt, browser.served = "launching", now, now, 0
  browser.waiter = place.id
  claim(browser)
  redis.call("HSET", K.templates, browser.config, A.config)
  redis.call("ZADD", K.launching, now + tonumber(A.claimMs), browser.id)
  event(browser, "none", "launching", "created")
  addBrowser(browser)
  place.unplaced, place.unplacedAt = nil, nil
  redis.call("HSET", K.waiterRecords, place.id, cjson.encode(place))
  return finish("claimed", cjson.encode({ browser = browser, waiter = place.id, lease = place.lease }))
end

if A.isRelaunch == "1" then
  local stored = redis.call("HGET", K.waiterRecords, waiter.id)
  local place = stored and cjson.decode(stored)
  if not place or not place.unplaced or place.connection ~= waiter.connection then
    return plain("superseded")
  end
  return claimFor(place)
end
local answered = answerRepeat(waiter, function(place)
  if place.unplaced and A.browser ~= "" then return claimFor(place) end
  return finish("waiting", cjson.encode(place))
end)
if answered then return answered end

if A.browser == "" then return plain("none") end
if A.most ~= "" and redis.call("HLEN", K.browsers) >= tonumber(A.most) then return plain("full") end
if A.reservedUntil ~= "" and now > tonumber(A.reservedUntil) then return plain("full") end
remember(waiter)
return claimFor(waiter)
