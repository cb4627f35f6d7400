-- create-extension: keep a new extension, where its name is free and there are not as many as there may be.
-- KEYS  extensions extensionNames extension
-- ARGV  id name digest sizeBytes most
-- REPLY created, taken, many
--- @include base

if redis.call("EXISTS", K.extension) == 1 then return plain("created") end
if A.name ~= "" and redis.call("HEXISTS", K.extensionNames, A.name) == 1 then return plain("taken") end
if redis.call("ZCARD", K.extensions) >= tonumber(A.most) then return plain("many") end
-- The score is in microseconds, so that two that came in one millisecond keep their order.
redis.call("ZADD", K.extensions, microseconds(), A.id)
redis.call("HSET", K.extension, "createdAt", now, "digest", A.digest, "sizeBytes", A.sizeBytes)
if A.name ~= "" then
  redis.call("HSET", K.extension, "name", A.name)
  redis.call("HSET", K.extensionNames, A.name, A.id)
end
return plain("created")
