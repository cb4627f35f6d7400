-- remove-vault: forget a vault, its items and the keys that open them, and free its name.
-- KEYS  vaults vaultNames vault vaultItems vaultValues vaultLinks vaultBytes vaultRemovals
-- ARGV  vault
-- REPLY removed, missing
--- @include base
--- @include vault/vault-items

local name = redis.call("HGET", K.vault, "name")
if not name then return plain("missing") end
redis.call("HDEL", K.vaultNames, name)
redis.call("ZREM", K.vaults, A.vault)
countBytes(0 - (redis.call("HGET", K.vaultBytes, A.vault) or 0))
redis.call("DEL", K.vault, K.vaultItems, K.vaultValues, K.vaultLinks)
noteRemoved(A.vault)
return plain("removed")
