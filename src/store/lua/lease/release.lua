-- release: end the lease of a browser, by the one that holds it.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  name browser lease reuse why isRetry request maxLeases eventsKept controlLostMs provisionalMs
--       retryWindowMs
-- REPLY released (the request), saving (the request; released, and what it leaves is saved as a profile),
--       already (nothing is held, or the lease that is meant has ended), superseded, unknown, elsewhere
-- `name` is what the caller calls the pool by, empty where that is its id or nothing; `elsewhere`: this pool
-- is not called so. `answer` is the lease's own where a release names it: it outlasts whoever repeats it, and
-- saves a note of the lease that has ended. `maxLeases` is empty where no browser is replaced for what it has
-- served.
--- @judged
--- @include grants

local first = earlierAnswer()
if first then return first[2] == A.request and first or plain("already") end

local terms = poolTerms()
if A.name ~= "" and terms.name ~= A.name then return plain("elsewhere") end
local browser = read(A.browser)
-- Whoever has the browser by now. A session that is to be deleted is the one that its lease holds.
local isHolder = browser and browser.lease and browser.lease.id == A.lease
local isLate = A.why == "released" and A.lease ~= "" and not isHolder
if isLate and redis.call("ZSCORE", K.endedLeases, A.lease) then return plain("already") end
if not browser or browser.state == "retiring" and not browser.lastLease then return plain("unknown") end
local held = browser.lease and browser.lease.id
if not held then
  if browser.state == "launching" then return plain("unknown") end
  if A.lease ~= "" and A.lease ~= browser.lastLease then return plain("superseded") end
  return plain("already")
end
if A.lease ~= "" and A.lease ~= held then return plain("superseded") end
local endedAt = browser.lastLeaseEndedAt
if A.lease == "" and A.isRetry == "1" and endedAt and now - endedAt <= tonumber(A.retryWindowMs) then
  return plain("already")
end

local function savesProfile()
  local attached = browser.lease.profile
  if attached then return cjson.decode(attached).save end
  return terms.kind == "on-demand" and browser.facts and cjson.decode(browser.facts).saves
end

if A.why == "released" and A.lease ~= "" then isEndAnswered, answerMs = true, endedLeaseMs end
browser.saving = savesProfile() or nil
local function endLease()
  if terms.kind == "on-demand" or A.reuse == "0" then return retire(browser, A.why) end
  if browser.lease.altered then return retire(browser, "altered") end
  if browser.uploaded and terms.reset == "state" then return retire(browser, "altered") end
  if terms.reset == "relaunch" then return retire(browser, A.why, true) end
  local served = browser.served + 1
  if A.maxLeases ~= "" and served >= tonumber(A.maxLeases) and not browser.replaceable then
    redis.call("ZADD", K.leaseCountIndex, served, browser.id)
  end
  if browser.lease.registrations == 0 and not browser.lease.touched and not browser.lease.startUrl then
    dropLease(browser, A.why)
    return settle(browser, A.why, terms)
  end
  fence(browser, A.why, terms.reset)
end
endLease()
if browser.saving then return finish("saving", A.request) end
return finish("released", A.request)
