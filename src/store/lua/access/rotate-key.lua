-- rotate-key: keep a new API key that may do what another may, which expires after a grace; its own end stays
-- where that comes first.
-- KEYS  keyDigests apiKeys livingKeys keyOrder keyEnds activeProjects idempotency
-- ARGV  id record maker graceMs most body salt keepMs
-- REPLY rotated (the new key's record), ended, short, missing, many, same (the salt and the record of the
--       first attempt), mismatch
-- `maker`: the API key that asks for it, empty where none does. `ended`: that lets nobody in any more.
-- `short`: the new key would end before the grace does.
--- @include base
--- @include organization/api-keys

local key = cjson.decode(A.record)
local answered = answerWithoutKey(key, "rotated")
if answered then return answered end
local old = readKey(A.id)
if not old or old.deletedAt then return plain("missing") end
key.lifetimeDays = key.lifetimeDays or old.lifetimeDays
local graceMs = tonumber(A.graceMs)
if key.lifetimeDays and key.lifetimeDays * 86400000 < graceMs then return plain("short") end
if redis.call("ZCARD", K.livingKeys) >= tonumber(A.most) then return plain("many") end
-- What it may do is copied here, so that no change comes in between.
key.name, key.projectId, key.policy, key.rotatedFrom = old.name, old.projectId, old.policy, old.id
old.expiresAt = math.min(old.expiresAt or math.huge, now + graceMs)
writeKey(old)
indexKey(old)
rememberGiven(key.id)
return plain("rotated", addKey(key))
