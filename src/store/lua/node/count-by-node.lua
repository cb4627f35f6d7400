-- count-by-node: how many browsers of this partition nodes have, some of them at a time.
-- KEYS  pool browsers nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps events
-- ARGV  after
-- REPLY spread (JSON {counts, after?}: a map of node to number, and where to go on; absent at the end),
--       indexing (ask again)
-- `after` is the last node that was counted before, empty at first: they come in the order of their names.
--- @include rebuild-index

local countedAtOnce = 200

if not isIndexed() then return plain("indexing") end
local nodes, counts, last = {}, {}, nil
for _, node in ipairs(redis.call("HKEYS", K.nodeStamps)) do
  if isNodeStamp(node) and node > A.after then table.insert(nodes, node) end
end
table.sort(nodes)
for place = 1, math.min(#nodes, countedAtOnce) do
  last = nodes[place]
  counts[last] = redis.call("ZLEXCOUNT", K.nodeIndex, nodeIndexRange(last))
end
return plain("spread", cjson.encode({ counts = counts, after = #nodes > countedAtOnce and last or nil }))
