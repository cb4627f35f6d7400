-- take-request: let a request in that is limited by its rate.
-- KEYS  rate
-- ARGV  perMinute
-- REPLY taken (how many are left), refused (the ms until the next is there)
--- @include base
--- @include organization/rates

local taken, left, waitMs = takeFrom(K.rate, tonumber(A.perMinute), 1)
if taken == 1 then return plain("taken", string.format("%.0f", left)) end
return plain("refused", string.format("%.0f", waitMs))
