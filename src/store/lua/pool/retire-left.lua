-- retire-left: retire some of what a pool is rid of and still has: all of a deleted one, else what was
-- discarded, older launches, and what is above its size.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases waitQueue
--       waiterRecords provisional controls replaceable pendingTombstones endedLeases events nodeIndex
--       generationIndex ageIndex leaseCountIndex nodeStamps answer
-- ARGV  isToSize atOnce eventsKept
-- REPLY more (ask again), rid (nothing is left)
-- `isToSize`: the pool has shrunk, and keeps nothing above its size for what is to be replaced.
--- @include browser/discards
--- @include removal

local first = earlierAnswer()
if first then return first end

local state, kind = unpack(poolFields("state", "kind"))
if state == "deleted" then
  retireDeleted()
  sweepPool()
elseif state == "open" and kind == "pool" then
  retireSuperfluous(A.isToSize == "1")
end
if budget == tonumber(A.atOnce) then return plain("rid") end
if budget < 1 then return finish("more") end
return finish("rid")
