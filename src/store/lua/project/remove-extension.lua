-- remove-extension: forget an extension and free its name.
-- KEYS  extensions extensionNames extension
-- ARGV  id
-- REPLY removed, missing
--- @include base

if redis.call("EXISTS", K.extension) == 0 then return plain("missing") end
local name = redis.call("HGET", K.extension, "name")
if name then redis.call("HDEL", K.extensionNames, name) end
redis.call("ZREM", K.extensions, A.id)
redis.call("DEL", K.extension)
return plain("removed")
