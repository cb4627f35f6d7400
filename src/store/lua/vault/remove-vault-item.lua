-- remove-vault-item: forget an item of a vault, with its values and what has happened to it.
-- KEYS  vaultItems vaultValues vaultLinks vaultEvents vaultBytes vaultRemovals
-- ARGV  vault id key
-- REPLY removed, missing
--- @include base
--- @include vault/vault-items

if heldItem() ~= A.id then return plain("missing") end
countBytes(0 - heldBytes())
redis.call("HDEL", K.vaultItems, A.key)
redis.call("HDEL", K.vaultValues, A.id)
redis.call("HDEL", K.vaultLinks, A.id)
redis.call("DEL", K.vaultEvents)
noteRemoved(A.id)
return plain("removed")
