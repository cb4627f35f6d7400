-- ended-keys: find which API keys let nobody in any more: they were deleted, have expired, are not there,
-- or are of a project that is not active.
-- KEYS  apiKeys activeProjects
-- ARGV  ids
-- REPLY ended (JSON list of ids)
-- `ids` is a JSON list.
--- @include base
--- @include organization/api-keys

local function isProjectActive(id)
  return not id or id == "default" or redis.call("SISMEMBER", K.activeProjects, id) == 1
end

local ended = {}
for _, id in ipairs(cjson.decode(A.ids)) do
  local key = readKey(id)
  local isOver = not key or key.deletedAt or key.expiresAt and now >= key.expiresAt
  if isOver or not isProjectActive(key.projectId) then table.insert(ended, id) end
end
return plain("ended", #ended > 0 and cjson.encode(ended) or "[]")
