-- count-by-node: how many browsers of this partition each node has.
-- KEYS  browsers nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps events
-- ARGV
-- REPLY spread (JSON map of node to number)
--- @include rebuild-index

rebuildIndexIfStale()
local counts = {}
for _, node in ipairs(redis.call("HKEYS", K.nodeStamps)) do
  if node ~= lastMove then counts[node] = redis.call("ZLEXCOUNT", K.nodeIndex, nodeIndexRange(node)) end
end
return plain("spread", cjson.encode(counts))
