-- ended-keys: find which API keys let nobody in any more: they were deleted, have expired, or are not there.
-- KEYS  apiKeys
-- ARGV  ids
-- REPLY ended (JSON list of ids)
-- `ids` is a JSON list.
--- @include base
--- @include organization/api-keys

local ended = {}
for _, id in ipairs(cjson.decode(A.ids)) do
  local key = readKey(id)
  if not key or key.deletedAt or key.expiresAt and now >= key.expiresAt then table.insert(ended, id) end
end
return plain("ended", #ended > 0 and cjson.encode(ended) or "[]")
