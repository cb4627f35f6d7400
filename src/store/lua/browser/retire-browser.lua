-- retire-browser: a browser is over: it crashed, was found unhealthy, could not be reset, or its node stops.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases waiterRecords
--       provisional replaceable pendingTombstones endedLeases events nodeIndex generationIndex ageIndex
--       leaseCountIndex nodeStamps answer
-- ARGV  browser why text earlyMs initialMs maxMs eventsKept
-- REPLY retiring (the claim), already (the claim it is retiring under), unknown
--- @include endings
--- @include failures

local first = earlierAnswer()
if first then return first end

local browser = read(A.browser)
if not browser then return plain("unknown") end
if browser.state == "retiring" then return plain("already", browser.claim) end
if browser.state == "launching" and browser.waiter then
  giveUp(browser, A.text, tonumber(A.initialMs), tonumber(A.maxMs))
  return finish("unknown")
end
if A.text ~= "" then browser.lastError = A.text end
-- A browser that dies soon after its first idle is a launch that failed late; one that was ever lent died of
-- what its holder did.
local isUntouched = not browser.lease and not browser.lastLease
local isFault = A.why == "crashed" or A.why == "unhealthy"
if isUntouched and isFault and browser.readyAt and now - browser.readyAt < tonumber(A.earlyMs) then
  countFailure(browser, A.text, tonumber(A.initialMs), tonumber(A.maxMs))
  redis.call("HSET", K.pool, "earlyDeathAt", now)
end
retire(browser, A.why)
return finish("retiring", browser.claim)
