-- take-request: let a request in that is limited by its rate.
-- KEYS  rate
-- ARGV  perMinute
-- REPLY taken (how many are left), refused (the ms until the next is there)
--- @include base
--- @include organization/rates

local mayTake, left, waitMs = unpack(takeFrom(K.rate, tonumber(A.perMinute), 1)[1])
if mayTake then return plain("taken", tostring(left)) end
return plain("refused", string.format("%.0f", waitMs))
