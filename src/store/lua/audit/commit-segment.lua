-- commit-segment: enter a segment into the manifest and take its entries out of the stream, both at once.
-- KEYS  auditStream auditState auditSegments
-- ARGV  number record hash previous first after bytes
-- REPLY committed, stale (others have sealed entries since it was made)
-- `first` is the id of its first entry in the stream; `after` the least id that is not its own.
--- @include base

local head = redis.call("HGET", K.auditState, "hash") or ""
if head == A.hash then return plain("committed") end
local oldest = redis.call("XRANGE", K.auditStream, "-", "+", "COUNT", 1)[1]
if head ~= A.previous or not oldest or oldest[1] ~= A.first then return plain("stale") end
redis.call("ZADD", K.auditSegments, A.number, A.record)
redis.call("HSET", K.auditState, "hash", A.hash, "last", A.number)
redis.call("XTRIM", K.auditStream, "MINID", A.after)
redis.call("HINCRBY", K.auditState, "bytes", -tonumber(A.bytes))
return plain("committed")
