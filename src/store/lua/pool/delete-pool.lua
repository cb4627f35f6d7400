-- delete-pool: end a pool: leases too where `force` says so; waiters are told at once.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases waitQueue
--       waiterRecords provisional controls replaceable pendingTombstones endedLeases events nodeIndex
--       generationIndex ageIndex leaseCountIndex nodeStamps answer
-- ARGV  force atOnce eventsKept
-- REPLY deleted, leased (some are, and no force), missing
-- From then on it lends nothing, and whatever is given back is retired. What a large one still has, waiters
-- included, is seen to by retire-left.
--- @include browser/discards
--- @include removal

local first = earlierAnswer()
if first then return first end

if poolFields("state")[1] ~= "open" then return plain("missing") end
if A.force ~= "1" and redis.call("ZCARD", K.leased) > 0 then return plain("leased") end
redis.call("HSET", K.pool, "state", "deleted")
stampRevision()
retireDeleted()
sweepPool()
return finish("deleted")
