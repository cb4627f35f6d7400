-- create-pool: write the record of a new pool; its name and size were reserved before.
-- KEYS  pool templates answer
-- ARGV  id name fields spec template size fillRate
-- REPLY created
-- `fields` is a JSON map of further fields of the record.
--- @include changes
--- @include node/server

local first = earlierAnswer()
if first then return first end
-- Two attempts under one idempotency key write the same pool.
if redis.call("HEXISTS", K.pool, "state") == 1 then return plain("created") end

for field, value in pairs(cjson.decode(A.fields)) do redis.call("HSET", K.pool, field, value) end
if A.name ~= "" then redis.call("HSET", K.pool, "name", A.name) end
redis.call("HSET", K.pool, "id", A.id, "kind", "pool", "state", "open", "createdAt", now,
  "revision", 1, "generation", 1, "networkGeneration", 1, "templateKey", "1",
  "spec", A.spec, "template", A.template, "size", A.size, "fillRate", A.fillRate,
  "tokens", math.ceil(tonumber(A.size) * tonumber(A.fillRate) / 100), "tokensAt", now,
  "credit", 0, "failures", 0, "backoffUntil", 0, "lastError", "", "hold", "")
redis.call("HSET", K.templates, "1", A.template)
noteServer()
return finish("created")
