-- flush: discard all idle browsers; they are replaced at the fill rate.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  atOnce eventsKept
-- REPLY flushed, busy (what was discarded before is to be retired first), missing
-- None of them is lent any more. Those that are not retired yet are by retire-left.
--- @include browser/discards

local first = earlierAnswer()
if first then return first end

if poolFields("state")[1] ~= "open" then return plain("missing") end
if redis.call("EXISTS", K.discarded) == 1 then return plain("busy") end
discardIdle("flushed")
retireDiscarded()
return finish("flushed")
