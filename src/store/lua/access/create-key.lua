-- create-key: keep a new API key, where there are not as many as there may be.
-- KEYS  keyDigests apiKeys livingKeys keyOrder keyEnds activeProjects idempotency
-- ARGV  record maker most body salt keepMs
-- REPLY created (its record), ended, many, same (the salt and the record of the first attempt), mismatch
-- `maker`: the API key that asks for it, empty where none does. `ended`: that lets nobody in any more.
--- @include base
--- @include organization/api-keys

local key = cjson.decode(A.record)
local answered = answerWithoutKey(key, "created")
if answered then return answered end
if redis.call("ZCARD", K.livingKeys) >= tonumber(A.most) then return plain("many") end
rememberGiven(key.id)
return plain("created", addKey(key))
