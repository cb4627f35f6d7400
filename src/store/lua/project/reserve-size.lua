-- reserve-size: set a pool's size where the sum over all pools stays within the limit; void after its
-- deadline unless the record says the same.
-- KEYS  sizes
-- ARGV  pool size limit mostPools graceMs
-- REPLY reserved, over (the sum), many (pools)
--- @include base

local sum, before, isNew = tonumber(A.size), 0, true
local sizes = redis.call("HGETALL", K.sizes)
for i = 1, #sizes, 2 do
  local size = tonumber(string.match(sizes[i + 1], "^%d+"))
  if sizes[i] == A.pool then before, isNew = size, false else sum = sum + size end
end
if isNew and #sizes / 2 >= tonumber(A.mostPools) then return plain("many") end
if A.limit ~= "" and tonumber(A.size) > before and sum > tonumber(A.limit) then return plain("over") end
redis.call("HSET", K.sizes, A.pool, A.size .. " " .. string.format("%.0f", now + tonumber(A.graceMs)))
return plain("reserved")
