-- tokens: the bucket that paces launches (docs/api.md#filling).
--- @include base
--- @include pool

-- Refills the bucket up to now, at most to one minute's worth, and gives what is in it.
local function refill(size, rate)
  local held, at = unpack(poolFields("tokens", "tokensAt"))
  local burst = math.ceil(size * rate / 100)
  -- After a failover the clock is another machine's, and may go back.
  local gained = math.max(0, now - (tonumber(at) or now)) / 60000 * size * rate / 100
  local tokens = math.min(burst, (tonumber(held) or burst) + gained)
  redis.call("HSET", K.pool, "tokens", tokens, "tokensAt", now)
  return tokens
end
