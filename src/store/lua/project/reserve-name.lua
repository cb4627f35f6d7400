-- reserve-name: take a name for an owner; void once its deadline is past and its owner does not live (the
-- tick looks).
-- KEYS  names
-- ARGV  field owner partition graceMs key takesOver
-- REPLY reserved (its deadline), renewed (its deadline; the owner had it before), taken
-- `key`: the digest of an idempotency key, empty without one. `takesOver`: what an attempt under the same key
-- has reserved, whose control has died before it asked for more, is this one's.
--- @include base

local text = redis.call("HGET", K.names, A.field)
local held = text and cjson.decode(text)
local isOwn = held and (held.owner == A.owner or A.takesOver == "1" and held.key == A.key)
if held and not isOwn then return plain("taken") end
-- Each reservation has a deadline of its own, so that giving one back leaves a later one of the same owner.
local deadline = math.max(now + tonumber(A.graceMs), held and held.deadline + 1 or 0)
local reserved = {
  owner = A.owner, partition = A.partition, deadline = deadline, key = A.key ~= "" and A.key or nil,
}
redis.call("HSET", K.names, A.field, cjson.encode(reserved))
if held then return plain("renewed", string.format("%.0f", deadline)) end
return plain("reserved", string.format("%.0f", deadline))
