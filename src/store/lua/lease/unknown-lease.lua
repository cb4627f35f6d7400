-- unknown-lease: a node has cut a lease that the record does not name: Redis has lost writes. What it left is
-- treated as its release would have.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  browser lease altered eventsKept
-- REPLY kept (the next holder may have it as it is), retiring (the claim), already (the claim it is retiring
--       under), held (the record does name it), unknown
-- `altered`: the lease has given the browser what no pool takes back.
--- @include endings

local first = earlierAnswer()
if first then return first end

local browser = read(A.browser)
if not browser then return plain("unknown") end
if browser.state == "retiring" then return plain("already", browser.claim) end
if browser.lease and browser.lease.id == A.lease then return plain("held") end
-- A session on demand has no such field: it has one holder in its life.
local reset = poolFields("reset")[1]
if A.altered == "0" and reset == "none" then return plain("kept") end
retire(browser, "not_clean", reset == "relaunch")
return finish("retiring", browser.claim)
