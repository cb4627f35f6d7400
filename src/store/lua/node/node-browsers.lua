-- node-browsers: the browsers of a node, unless nothing of theirs has changed since they were read last.
-- KEYS  browsers nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps events
-- ARGV  node known
-- REPLY same, browsers (a stamp, then the records, each on a line)
-- `known` is the stamp of the last reading, empty for the first.
--- @include rebuild-index

rebuildIndexIfStale()
local last = redis.call("HGET", K.nodeStamps, A.node) or "none"
if last == A.known then return plain("same") end
local ids, most, lines = idsOn(A.node), 1000, { last }
for from = 1, #ids, most do
  local batch = redis.call("HMGET", K.browsers, unpack(ids, from, math.min(from + most - 1, #ids)))
  for _, text in ipairs(batch) do
    table.insert(lines, text)
  end
end
-- JSON holds no line breaks.
return plain("browsers", table.concat(lines, "\n"))
