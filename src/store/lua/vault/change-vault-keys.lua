-- change-vault-keys: keep the keys of a vault in another wrapping, where they are still as they were read.
-- KEYS  vault
-- ARGV  before after
-- REPLY changed, stale
--- @include base

local keys = redis.call("HGET", K.vault, "keys")
if keys == A.after then return plain("changed") end
if keys ~= A.before then return plain("stale") end
redis.call("HSET", K.vault, "keys", A.after)
return plain("changed")
