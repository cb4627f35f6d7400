-- spread: how many browsers of this home each node has.
-- KEYS  browsers retiring places generations ages served changed
-- ARGV
-- REPLY spread (JSON map of node to number)
--- @include mend

mend()
local counts = {}
for _, node in ipairs(redis.call("HKEYS", K.changed)) do counts[node] = redis.call("ZLEXCOUNT", K.places, placesOf(node)) end
return plain("spread", cjson.encode(counts))
