-- admit: find the API key of a digest, judge whether it has expired, and judge each of the requests that came
-- with it in one turn of a daemon: take it out of the key's rate, and see whether the project that it is
-- about is active. Note now and then that the key is used.
-- KEYS  keyDigests apiKeys keyUses activeProjects callerRate
-- ARGV  digest noteMs projects perMinute
-- REPLY judged (a word for each request, a line break, the key's record), noted (the same, and a note of its
--       use stands), expired (the key's record), unknown
-- `projects`: for each request the one that it names, `-` where it names none, with spaces between.
-- `perMinute`: empty where requests have no rate. A word is `admitted`, `limited` or `elsewhere` (there is no
-- such active project), and where there is a rate a colon and how many are left, or of one that is `limited`
-- the ms until the next is there. `noteMs`: how long a note of its use stands, empty where none is due.
--- @include base
--- @include organization/rates

local entry = redis.call("HGET", K.keyDigests, A.digest)
if not entry then return plain("unknown") end
local id, expires = entry:match("^(%w+) ?(%d*)$")
local record = redis.call("HGET", K.apiKeys, id)
if not record then return plain("unknown") end
if expires ~= "" and now >= tonumber(expires) then return plain("expired", record) end

local projects = {}
for project in A.projects:gmatch("%S+") do
  -- The record is not decoded for it: within the texts that it holds, quotes are escaped.
  projects[#projects + 1] = project ~= "-" and project or record:match('"projectId":"(%w+)"') or "default"
end
local taken, left, waitMs = #projects, nil, nil
if A.perMinute ~= "" then taken, left, waitMs = takeFrom(K.callerRate, tonumber(A.perMinute), #projects) end
local isActive = { default = true }
local words = {}
for place, project in ipairs(projects) do
  local word = "limited"
  if place <= taken then
    if isActive[project] == nil then
      isActive[project] = redis.call("SISMEMBER", K.activeProjects, project) == 1
    end
    word = isActive[project] and "admitted" or "elsewhere"
  end
  -- Each of those that were taken has left less.
  local told = left and (place <= taken and left + taken - place or waitMs)
  words[place] = told and word .. ":" .. string.format("%.0f", told) or word
end
local judged = table.concat(words, " ") .. "\n" .. record
if taken > 0 and A.noteMs ~= "" then
  local used = tonumber(redis.call("HGET", K.keyUses, id) or 0)
  if math.abs(now - used) < tonumber(A.noteMs) then return plain("noted", judged) end
  -- Redis may be full: whoever gives something back then is let in all the same.
  if type(redis.pcall("HSET", K.keyUses, id, now)) == "number" then return plain("noted", judged) end
end
return plain("judged", judged)
