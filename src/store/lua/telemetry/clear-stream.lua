-- clear-stream: all events of a lease so far go; its numbers go on.
-- KEYS  streamEvents streamState
-- ARGV
-- REPLY cleared
--- @include base

redis.call("UNLINK", K.streamEvents)
if redis.call("EXISTS", K.streamState) == 1 then redis.call("HSET", K.streamState, "bytes", 0) end
return plain("cleared")
