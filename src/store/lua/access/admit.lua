-- admit: find the API key of a digest, judge whether it has expired, and note now and then that it is used.
-- KEYS  keyDigests apiKeys keyUses
-- ARGV  digest noteMs
-- REPLY admitted (the key's record), expired (the key's record), unknown
--- @include base

local entry = redis.call("HGET", K.keyDigests, A.digest)
if not entry then return plain("unknown") end
local id, expires = entry:match("^(%w+) ?(%d*)$")
local record = redis.call("HGET", K.apiKeys, id)
if not record then return plain("unknown") end
if expires ~= "" and now >= tonumber(expires) then return plain("expired", record) end
local used = tonumber(redis.call("HGET", K.keyUses, id) or 0)
if math.abs(now - used) >= tonumber(A.noteMs) then redis.call("HSET", K.keyUses, id, now) end
return plain("admitted", record)
