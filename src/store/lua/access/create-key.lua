-- create-key: keep a new API key, where there are not as many as there may be.
-- KEYS  keyDigests apiKeys livingKeys keyOrder keyEnds idempotency
-- ARGV  record most body salt keepMs
-- REPLY created (its record), many, same (the salt and the record of the first attempt), mismatch
--- @include base
--- @include organization/api-keys

local given, isSame = givenBefore()
if given then return isSame and plain("same", given) or plain("mismatch") end
local key = cjson.decode(A.record)
local present = redis.call("HGET", K.apiKeys, key.id)
if present then return plain("created", present) end
if redis.call("ZCARD", K.livingKeys) >= tonumber(A.most) then return plain("many") end
rememberGiven(key.id)
return plain("created", addKey(key))
