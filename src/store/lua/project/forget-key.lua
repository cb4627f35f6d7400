-- forget-key: forget an answer that is kept under an idempotency key, unless another request was told of it.
-- KEYS  idempotency
-- ARGV  body value
-- REPLY forgotten, kept
--- @include base

local text = redis.call("GET", K.idempotency)
local kept = text and cjson.decode(text)
if not kept or kept.body ~= A.body or kept.value ~= A.value or kept.isTold then return plain("kept") end
redis.call("DEL", K.idempotency)
return plain("forgotten")
