-- create-vault: keep a new vault, where its name is free and there are not as many as there may be.
-- KEYS  vaults vaultNames vault vaultRemovals
-- ARGV  id name keys most
-- REPLY created, found (its id), many
--- @include base
--- @include vault/vault-items

if wasRemoved(A.id) then return plain("created", A.id) end
local holder = redis.call("HGET", K.vaultNames, A.name)
-- The same creation again, whose first answer was lost on its way.
if holder == A.id then return plain("created", A.id) end
if holder then return plain("found", holder) end
if redis.call("ZCARD", K.vaults) >= tonumber(A.most) then return plain("many") end
-- The score is in microseconds, so that two that came in one millisecond keep their order.
redis.call("ZADD", K.vaults, microseconds(), A.id)
redis.call("HSET", K.vaultNames, A.name, A.id)
redis.call("HSET", K.vault, "name", A.name, "keys", A.keys, "createdAt", now, "updatedAt", now)
return plain("created", A.id)
