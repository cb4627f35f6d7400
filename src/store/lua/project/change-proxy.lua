-- change-proxy: call a proxy otherwise, or note what a check has found; an empty argument leaves what there
-- is.
-- KEYS  proxyNames proxy
-- ARGV  id name checked
-- REPLY changed, missing
--- @include base

if redis.call("EXISTS", K.proxy) == 0 then return plain("missing") end
if A.name ~= "" then
  redis.call("HSET", K.proxy, "name", A.name)
  redis.call("HSET", K.proxyNames, A.id, A.name)
end
if A.checked ~= "" then redis.call("HSET", K.proxy, "checked", A.checked, "checkedAt", now) end
return plain("changed")
