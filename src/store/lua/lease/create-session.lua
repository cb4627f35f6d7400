-- create-session: claim the launch of an on-demand browser for a caller who waits for it; again where a
-- launch of that caller has failed.
-- KEYS  pool templates browsers launching leases waiterRecords provisional controls endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps answer idempotency
-- ARGV  browser waiter config body keepMs claimMs provisionalMs eventsKept most isAgain
-- REPLY claimed (JSON {browser, waiter, lease}), again (the waiter; still launching), granted (the browser), mismatch, over, full (as many sessions as may be), none (no room), superseded (the place is another connection's, or was given up)
-- `browser` and `waiter` are JSON; the waiter is bound to the browser and stands in no queue. `browser` is
-- empty where no node has room: then only what the key was given before is given again. `isAgain`: for a
-- place that stands since its launch has failed, and for nothing else.
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

if A.isAgain == "1" then
  local standing = redis.call("HGET", K.waiterRecords, waiter.id)
  local place = standing and cjson.decode(standing)
  if not place or not place.unplaced or place.connection ~= waiter.connection then return plain("superseded") end
  return claimFor(place)
end
local answered = repeated(waiter, function(place)
  if place.unplaced and A.browser ~= "" then return claimFor(place) end
  return finish("again", cjson.encode(place))
end)
if answered then return answered end

if A.browser == "" then return plain("none") end
if A.most ~= "" and redis.call("HLEN", K.browsers) >= tonumber(A.most) then return plain("full") end
remember(waiter)
return claimFor(waiter)
