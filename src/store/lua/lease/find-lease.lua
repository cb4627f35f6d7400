-- find-lease: the browser of a live lease.
-- KEYS  browsers leases
-- ARGV  lease
-- REPLY held (the browser), none
--- @include base

local id = redis.call("HGET", K.leases, A.lease)
if not id then return plain("none") end
return plain("held", redis.call("HGET", K.browsers, id))
