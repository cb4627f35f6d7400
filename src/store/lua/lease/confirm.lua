-- confirm: the replies that told of these leases were flushed; they are final.
-- KEYS  provisional
-- ARGV  leases
-- REPLY confirmed
-- `leases` is a JSON list of ids. Confirming twice, or a lease that is over, is harmless.

local leases, most = cjson.decode(A.leases), 1000
for from = 1, #leases, most do
  redis.call("ZREM", K.provisional, unpack(leases, from, math.min(from + most - 1, #leases)))
end
return { "confirmed", "", "0", "" }
