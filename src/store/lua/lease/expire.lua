-- expire: end a lease that its node found inactive, unless a client was registered, or the
-- browser itself was to be changed, since.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  browser lease registrations eventsKept
-- REPLY expired, kept
--- @include endings

local first = earlierAnswer()
if first then return first end

local browser = read(A.browser)
local lease = browser and browser.lease
if not lease or lease.id ~= A.lease or lease.registrations ~= tonumber(A.registrations) then
  return plain("kept")
end
-- Where the clock has gone back since, the node's own clock, which does not go back, is the better one. A
-- failover may have taken back the number of registrations and given it again, so the last of them counts as
-- old as well.
local function isYoung(at) return at <= now and now - at < lease.timeoutSeconds * 1000 end
if isYoung(lease.grantedAt) or isYoung(lease.registeredAt or 0) then return plain("kept") end
retire(browser, "expired")
return finish("expired")
