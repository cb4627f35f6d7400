-- beat-node: a node says that it lives, and what it is.
-- KEYS  beats facts
-- ARGV  node facts
-- REPLY beaten
--- @include base

redis.call("ZADD", K.beats, now, A.node)
redis.call("HSET", K.facts, A.node, A.facts)
return plain("beaten")
