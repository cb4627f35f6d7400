-- rates: a bucket that is refilled all the time and holds as many requests as are refilled in a minute. What
-- is kept is one number: the instant, in microseconds, at which it is full again.

local minute = 60000000

-- Takes so many requests out of the bucket, one after the other. Gives for each whether there was one, how
-- many are left, and in how many ms the next one is there.
local function takeFrom(bucket, perMinute, count)
  local interval = minute / perMinute
  local at = clock[1] * 1000000 + clock[2]
  -- One further ahead was written under a higher rate, or before Redis's clock went back.
  local full = math.min(math.max(tonumber(redis.call("GET", bucket) or 0), at), at + minute)
  local outcomes, isAnyTaken = {}, false
  for place = 1, count do
    local mayTake = full + interval <= at + minute
    if mayTake then full, isAnyTaken = full + interval, true end
    local left = math.floor((at + minute - full) / interval)
    local waitMs = mayTake and 0 or math.ceil((full + interval - at - minute) / 1000)
    outcomes[place] = { mayTake, left, waitMs }
  end
  if isAnyTaken then
    redis.call("SET", bucket, string.format("%.0f", full), "PX", math.ceil((full - at) / 1000))
  end
  return outcomes
end

-- The same where there may be no rate. Gives for each whether it is let in, and what is told of the rate:
-- nothing where there is none, else how many are left, or where there was none left the ms until the next is
-- there.
local function takeOf(bucket, perMinute, count)
  local outcomes = perMinute ~= "" and takeFrom(bucket, tonumber(perMinute), count) or {}
  for place = 1, count do
    local mayTake, left, waitMs = unpack(outcomes[place] or { true })
    outcomes[place] = { mayTake, left and string.format("%.0f", mayTake and left or waitMs) or "" }
  end
  return outcomes
end
