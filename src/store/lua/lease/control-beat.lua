-- control-beat: a control that has waiters or unconfirmed grants here lives.
-- KEYS  pool controls
-- ARGV  control
-- REPLY accepted
--- @include base

-- A deleted pool's keys are gone; none may come back.
if redis.call("EXISTS", K.pool) == 1 then redis.call("HSET", K.controls, A.control, now) end
return plain("accepted")
