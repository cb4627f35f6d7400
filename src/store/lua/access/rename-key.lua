-- rename-key: call an API key otherwise.
-- KEYS  apiKeys
-- ARGV  id name
-- REPLY renamed (its record), missing
--- @include base
--- @include organization/api-keys

local key = readKey(A.id)
if not key or key.deletedAt then return plain("missing") end
key.name = A.name
return plain("renamed", writeKey(key))
