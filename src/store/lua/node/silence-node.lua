-- silence-node: a node does not answer, and its browsers are lent to nobody for a while; or it answers again.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  node silentMs eventsKept controlLostMs provisionalMs
-- REPLY silenced, heard, none (nothing of this partition is there)
-- `silentMs` is 0 where it answers again.
--- @include grants

local first = earlierAnswer()
if first then return first end

local terms = poolTerms()
if terms.state ~= "open" then return plain("none") end
local nodes, silentMs = terms.closed, tonumber(A.silentMs)
local node = nodes[A.node] or {}
local wasSilent = node.silentUntil ~= nil
if silentMs > 0 and redis.call("ZLEXCOUNT", K.nodeIndex, nodeIndexRange(A.node)) == 0 then
  return plain("none")
end
if silentMs == 0 and not wasSilent then return plain("none") end

node.silentUntil = silentMs > 0 and now + silentMs or nil
nodes[A.node] = next(node) and node or nil
keepClosed(nodes)
if silentMs > 0 and wasSilent then return plain("silenced") end
rankIdleOf(A.node, nodes)
if silentMs > 0 then return plain("silenced") end
dispatch(terms)
return finish("heard")
