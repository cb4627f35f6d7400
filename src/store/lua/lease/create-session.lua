-- create-session: lend a browser that stands by, or claim the launch of one for a caller who waits for it; or
-- another launch for a caller whose first has failed.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases waiterRecords
--       provisional controls endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex
--       nodeStamps answer idempotency
-- ARGV  browser waiter template body keepMs claimMs provisionalMs eventsKept most isRelaunch reservedUntil
--       standby facts
-- REPLY claimed (JSON {browser, waiter, lease}), waiting (the waiter; its browser is still launching),
--       granted (the browser), mismatch, over, full (as many sessions as may be, or their reservation is
--       void), none (nothing is launched), superseded (the place is another connection's, or was given up)
-- `browser` and `waiter` are JSON; the waiter is bound to the browser and is in no queue. `browser` is empty
-- where nothing is launched: then only a repeat is answered, and none whose launch has failed. `isRelaunch`
-- is set for a waiter whose launch has failed and whose record is still there. `reservedUntil`: when the
-- caller's reservation of a session becomes void, empty without one. `standby` names the launch template that
-- a browser which stands by has to have been launched from, empty where none will do; it is then a session as
-- if launched from `template`, and `facts` is what its record repeats of that.
--- @include repeats
--- @include browser/on-demand
--- @include counts
--- @include grants

local first = answeredBefore()
if first then return first end

local waiter = cjson.decode(A.waiter)
redis.call("HSET", K.controls, waiter.control, now)

local function claimFor(place)
  if A.browser == "" then return plain("none") end
  openOnDemand()
  local browser = cjson.decode(A.browser)
  browser.waiter = place.id
  claimOnDemand(browser, A.template, "created")
  place.unplaced, place.unplacedAt, place.failure = nil, nil, nil
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
  -- The request that has it may still have it launched elsewhere.
  if place.unplaced and A.browser == "" then return plain("none") end
  takeOver(place, waiter)
  if place.unplaced then return claimFor(place) end
  return finish("waiting", cjson.encode(place))
end)
if answered then return answered end

-- What stands by is no session, nor is what is over: its node has room for another when it has ended it.
local function countSessions()
  return liveCount() - redis.call("ZCARD", K.idle) - countMarked(K.launching, '"standby":"')
end

local function findStandby()
  local mark, terms, from = '"standby":"' .. A.standby .. '"', poolTerms(), 0
  beginEpoch(terms)
  while true do
    local ids = redis.call("ZRANGE", K.idle, from, from + 31)
    if #ids == 0 then return nil end
    for _, text in ipairs(redis.call("HMGET", K.browsers, unpack(ids))) do
      local browser = text and text:find(mark, 1, true) and cjson.decode(text)
      if browser and mayLend(browser, terms) then return browser end
    end
    from = from + #ids
  end
end

-- Its record says of it from now on what it would say had it been launched for this caller now.
local function lendStandby(browser)
  redis.call("HDEL", K.templates, browser.templateKey)
  browser.standby, browser.createdAt, browser.templateKey, browser.facts = nil, now, waiter.lease, A.facts
  redis.call("HSET", K.templates, browser.templateKey, A.template)
  return recordLease(browser, waiter, { timeoutSeconds = waiter.timeoutSeconds })
end

local standing = A.standby ~= "" and findStandby()
if A.browser == "" and not standing then return plain("none") end
if A.most ~= "" and countSessions() >= tonumber(A.most) then return plain("full") end
if A.reservedUntil ~= "" and now > tonumber(A.reservedUntil) then return plain("full") end
remember(waiter)
if standing then return grant(lendStandby(standing), waiter.lease) end
return claimFor(waiter)
