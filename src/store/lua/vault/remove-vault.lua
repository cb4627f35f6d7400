-- remove-vault: forget a vault, its items and the keys that open them, and free its name.
-- KEYS  vaults vaultNames vault vaultItems vaultValues vaultLinks
-- ARGV  id
-- REPLY removed, missing
--- @include base

local name = redis.call("HGET", K.vault, "name")
if not name then return plain("missing") end
redis.call("HDEL", K.vaultNames, name)
redis.call("ZREM", K.vaults, A.id)
redis.call("DEL", K.vault, K.vaultItems, K.vaultValues, K.vaultLinks)
return plain("removed")
