-- commit-segment: enter a segment into the manifest and take its entries out of the stream, both at once.
-- KEYS  auditStream auditState auditSegments
-- ARGV  number record hash previous first last after bytes readAt
-- REPLY committed, stale (it is not of what is there now, or was made too long ago)
-- `first` and `last` are the ids of its first and last entry in the stream; `after` the least id that is not
-- its own. `readAt` is when they were read.
--- @include base

-- Archives that nothing names are swept after an hour: a segment that is committed names none of those.
local sealMs = 1800000
local head = redis.call("HGET", K.auditState, "hash") or ""
if head == A.hash then return plain("committed") end
local oldest = redis.call("XRANGE", K.auditStream, "-", "+", "COUNT", 1)[1]
if head ~= A.previous or not oldest or oldest[1] ~= A.first then return plain("stale") end
-- A failover may have lost the last of them, and others may have come in their place.
if not redis.call("XRANGE", K.auditStream, A.last, A.last)[1] then return plain("stale") end
if now - tonumber(A.readAt) > sealMs then return plain("stale") end
-- First: a Redis that is full refuses what takes memory, but not in a script that has begun to change
-- something.
redis.call("XTRIM", K.auditStream, "MINID", A.after)
redis.call("ZADD", K.auditSegments, A.number, A.record)
redis.call("HSET", K.auditState, "hash", A.hash, "last", A.number)
redis.call("HINCRBY", K.auditState, "bytes", -tonumber(A.bytes))
return plain("committed")
