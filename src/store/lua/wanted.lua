-- wanted: how many launches a fill would claim now, if there were room; notes what holds the pool up where that is none.
-- KEYS  pool browsers retiring worn
-- ARGV  most
-- REPLY wanted (a number)
--- @include tokens
--- @include counts

local size, rate, credit, backoff, state, unsupported =
  unpack(poolFields("size", "fillRate", "credit", "backoffUntil", "state", "unsupported"))
if state ~= "open" or unsupported ~= "" then return plain("wanted", "0") end
local short = tonumber(size) + redis.call("SCARD", K.worn) - liveCount()
local function hold(reason)
  redis.call("HSET", K.pool, "hold", reason)
  return plain("wanted", "0")
end
if short <= 0 then return hold("") end
if tonumber(backoff) > now then return hold("launch_failing") end
local means = math.floor(refill(tonumber(size), tonumber(rate))) + math.max(0, tonumber(credit))
if means < 1 then return hold(tonumber(rate) == 0 and "rate_zero" or "rate") end
-- Where there are means, the claim that follows says what held it up.
local count = math.min(short, means, tonumber(A.most))
redis.call("HSET", K.pool, "asked", count)
return plain("wanted", tostring(count))
