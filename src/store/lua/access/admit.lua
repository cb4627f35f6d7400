-- admit: find the API key of a digest, judge whether it has expired, take the request out of its rate, and judge
-- whether the project that the request is about is active. Note now and then that the key is used.
-- KEYS  keyDigests apiKeys keyUses activeProjects callerRate
-- ARGV  digest noteMs project perMinute
-- REPLY admitted (its rate, the key's record), expired (the same), limited (the same), elsewhere (the same), unknown
-- `project`: the one that the request names, if it does. `elsewhere`: there is no such active project.
-- `perMinute`: empty where requests have no rate; its rate is empty then, else how many are left, or of one that
-- is `limited` the ms until the next is there.
--- @include base
--- @include organization/rates

local entry = redis.call("HGET", K.keyDigests, A.digest)
if not entry then return plain("unknown") end
local id, expires = entry:match("^(%w+) ?(%d*)$")
local record = redis.call("HGET", K.apiKeys, id)
if not record then return plain("unknown") end
if expires ~= "" and now >= tonumber(expires) then return plain("expired", " " .. record) end
local mayTake, rate = takeOf(K.callerRate, A.perMinute)
local payload = rate .. " " .. record
if not mayTake then return plain("limited", payload) end
local used = tonumber(redis.call("HGET", K.keyUses, id) or 0)
-- Redis may be full: whoever gives something back then is let in all the same.
if math.abs(now - used) >= tonumber(A.noteMs) then redis.pcall("HSET", K.keyUses, id, now) end
-- The record is not decoded for it: within the texts that it holds, quotes are escaped.
local own = A.project == "" and record:match('"projectId":"(%w+)"')
local project = A.project ~= "" and A.project or own or "default"
if project ~= "default" and redis.call("SISMEMBER", K.activeProjects, project) == 0 then
  return plain("elsewhere", payload)
end
return plain("admitted", payload)
