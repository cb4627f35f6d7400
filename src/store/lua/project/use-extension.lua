-- use-extension: note that a browser was launched with an extension.
-- KEYS  extension
-- ARGV
-- REPLY noted, missing
--- @include base

if redis.call("EXISTS", K.extension) == 0 then return plain("missing") end
redis.call("HSET", K.extension, "lastUsedAt", now)
return plain("noted")
