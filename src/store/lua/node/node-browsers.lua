-- node-browsers: the browsers of a node, unless nothing of theirs has changed since they were read last.
-- KEYS  pool browsers nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps events
-- ARGV  node known
-- REPLY same (the pool's stamp), browsers (the node's stamp, the pool's, then the records, each on a line),
--       indexing (ask again)
-- `known` is the node's stamp of the last reading, empty for the first.
--- @include rebuild-index

if not isIndexed() then return plain("indexing") end
local last, revised = unpack(redis.call("HMGET", K.nodeStamps, A.node, lastRevision))
last, revised = last or "none", revised or "none"
if last == A.known then return plain("same", revised) end
local lines = { last, revised }
for _, text in ipairs(textsOf(idsOn(A.node))) do table.insert(lines, text) end
-- JSON holds no line breaks.
return plain("browsers", table.concat(lines, "\n"))
