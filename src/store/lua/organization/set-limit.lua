-- set-limit: set one of the limits that the API sets, where it is still what it was read as.
-- KEYS  limits
-- ARGV  field before after
-- REPLY set, changed
-- `before` and `after` are empty where there is none.
--- @include base

if (redis.call("HGET", K.limits, A.field) or "") ~= A.before then return plain("changed") end
if A.after == "" then redis.call("HDEL", K.limits, A.field) else redis.call("HSET", K.limits, A.field, A.after) end
return plain("set")
