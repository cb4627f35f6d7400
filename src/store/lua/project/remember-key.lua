-- remember-key: keep an answer under an idempotency key, or give the one that is kept.
-- KEYS  idempotency
-- ARGV  body value keepMs
-- REPLY new, same (the value), mismatch
--- @include base

local text = redis.call("GET", K.idempotency)
if not text then
  redis.call("SET", K.idempotency, cjson.encode({ body = A.body, value = A.value }), "PX", A.keepMs)
  return plain("new")
end
local kept = cjson.decode(text)
if kept.body ~= A.body then return plain("mismatch") end
-- A script that Redis was asked for again finds what it has kept itself.
if kept.value ~= A.value and not kept.isTold then
  kept.isTold = true
  redis.call("SET", K.idempotency, cjson.encode(kept), "KEEPTTL")
end
return plain("same", kept.value)
