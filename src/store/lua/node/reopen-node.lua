-- reopen-node: a node drains no more: what it has of this partition is lent again, and waiters are served.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  node eventsKept controlLostMs provisionalMs
-- REPLY reopened, none (it is not draining here)
-- Browsers for which a replacement is under way stay replaceable, and go when that has come.
--- @include grants

local first = earlierAnswer()
if first then return first end

local terms = poolTerms()
local node = terms.closed[A.node]
if terms.state ~= "open" or not node or not node.drainsUntil then return plain("none") end
node.drainsUntil = nil
terms.closed[A.node] = next(node) and node or nil
keepClosed(terms.closed)
rankIdleOf(A.node, terms.closed)
dispatch(terms)
return finish("reopened")
