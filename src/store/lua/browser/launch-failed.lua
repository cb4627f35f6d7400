-- launch-failed: the node could not launch a browser and has cleared up after the attempt.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded waiterRecords events
--       nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps answer
-- ARGV  browser claim text initialMs maxMs eventsKept
-- REPLY failed, stale
--- @include failures

local first = earlierAnswer()
if first then return first end

local browser = read(A.browser)
if not browser or browser.state ~= "launching" or browser.claim ~= A.claim then return plain("stale") end
giveUp(browser, A.text, tonumber(A.initialMs), tonumber(A.maxMs))
return finish("failed")
