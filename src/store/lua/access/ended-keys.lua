-- ended-keys: find which API keys let nobody in any more.
-- KEYS  apiKeys activeProjects
-- ARGV  ids
-- REPLY ended (JSON list of ids)
-- `ids` is a JSON list.
--- @include base
--- @include organization/api-keys

local ended = {}
for _, id in ipairs(cjson.decode(A.ids)) do
  if hasEnded(id) then table.insert(ended, id) end
end
return plain("ended", #ended > 0 and cjson.encode(ended) or "[]")
