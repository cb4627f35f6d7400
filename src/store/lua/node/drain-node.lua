-- drain-node: a node is to drain: nothing is placed there from now on. Asked again, it ends at another time.
-- KEYS  beats version drains
-- ARGV  node ms lostMs
-- REPLY draining (until when), unknown
--- @include base

local beat = redis.call("ZSCORE", K.beats, A.node)
if not beat or now - beat > tonumber(A.lostMs) then return plain("unknown") end
local drainsUntil = string.format("%.0f", now + tonumber(A.ms))
redis.call("HSET", K.drains, A.node, drainsUntil)
redis.call("INCR", K.version)
return plain("draining", drainsUntil)
