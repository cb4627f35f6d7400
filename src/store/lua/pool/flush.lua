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

local state, size, credit = unpack(poolFields("state", "size", "credit"))
if state ~= "open" then return plain("missing") end
if redis.call("EXISTS", K.discarded) == 1 then return plain("busy") end
-- What is left of earlier rebuilds pays for nothing that is flushed.
boundCredit(tonumber(size), tonumber(credit))
discardIdle("flushed")
retireDiscarded()
return finish("flushed")
