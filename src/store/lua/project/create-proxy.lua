-- create-proxy: keep a new proxy, where there are not as many as there may be.
-- KEYS  proxies proxyNames proxy
-- ARGV  id record name sealed most
-- REPLY created, many
--- @include base

if redis.call("EXISTS", K.proxy) == 1 then return plain("created") end
if redis.call("ZCARD", K.proxies) >= tonumber(A.most) then return plain("many") end
-- The score is in microseconds, so that two that came in one millisecond keep their order.
redis.call("ZADD", K.proxies, microseconds(), A.id)
redis.call("HSET", K.proxy, "record", A.record)
if A.sealed ~= "" then redis.call("HSET", K.proxy, "sealed", A.sealed) end
if A.name ~= "" then
  redis.call("HSET", K.proxy, "name", A.name)
  redis.call("HSET", K.proxyNames, A.id, A.name)
end
return plain("created")
