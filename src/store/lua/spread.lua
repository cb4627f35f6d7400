-- spread: how many browsers of this home each node has.
-- KEYS  browsers places generations ages served changed events
-- ARGV
-- REPLY spread (JSON map of node to number)
--- @include mend

mend()
local counts = {}
for _, node in ipairs(redis.call("HKEYS", K.changed)) do
  if node ~= moveCount then counts[node] = redis.call("ZLEXCOUNT", K.places, placesOf(node)) end
end
return plain("spread", cjson.encode(counts))
