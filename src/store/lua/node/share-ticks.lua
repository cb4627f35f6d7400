-- share-ticks: a control lives and runs ticks; which do.
-- KEYS  tickControls
-- ARGV  control lostMs
-- REPLY sharing (JSON list of the controls, this one among them)
-- A control that has said nothing for `lostMs` is no longer one of them.
--- @include base

redis.call("ZADD", K.tickControls, now, A.control)
redis.call("ZREMRANGEBYSCORE", K.tickControls, "-inf", now - tonumber(A.lostMs))
-- One that was heard before the clock went back is to be heard again.
redis.call("ZREMRANGEBYSCORE", K.tickControls, "(" .. now, "+inf")
return plain("sharing", cjson.encode(redis.call("ZRANGE", K.tickControls, 0, -1)))
