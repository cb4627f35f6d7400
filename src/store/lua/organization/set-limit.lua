-- set-limit: set one of the limits that the API sets, where it is still what it was read as.
-- KEYS  limits
-- ARGV  field before after
-- REPLY set, changed
-- `before` and `after` are empty where there is none.
--- @include base

local present = redis.call("HGET", K.limits, A.field) or ""
-- As when the same is asked again, whose first answer was lost on its way.
if present == A.after then return plain("set") end
if present ~= A.before then return plain("changed") end
if A.after == "" then
  redis.call("HDEL", K.limits, A.field)
else
  redis.call("HSET", K.limits, A.field, A.after)
end
return plain("set")
