-- create-key: keep a new API key, where there are not as many as there may be.
-- KEYS  keyDigests apiKeys livingKeys keyOrder keyEnds activeProjects idempotency
-- ARGV  record maker most body salt keepMs
-- REPLY created (its record), ended, many, same (the salt and the record of the first attempt), mismatch
-- `maker`: the API key that asks for it, empty where none does. `ended`: that lets nobody in any more.
--- @include base
--- @include organization/api-keys

local given, isSame = givenBefore()
if given then return isSame and plain("same", given) or plain("mismatch") end
local key = cjson.decode(A.record)
local present = redis.call("HGET", K.apiKeys, key.id)
if present then return plain("created", present) end
if A.maker ~= "" and hasEnded(A.maker) then return plain("ended") end
if redis.call("ZCARD", K.livingKeys) >= tonumber(A.most) then return plain("many") end
rememberGiven(key.id)
return plain("created", addKey(key))
