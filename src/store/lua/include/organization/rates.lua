-- rates: a bucket that is refilled all the time and holds as many requests as are refilled in a minute. What
-- is kept is one number: the instant, in microseconds, at which it is full again.

local minute = 60000000
-- Every bucket is full by then, as one that is not there. Kept no longer than it takes to be full, most would
-- be deleted and made anew with each request.
local keepMs = "60000"

-- Notes when the bucket is full. While Redis takes no writes, the rate is not held: who only reads would be
-- refused with it. Any other fault is raised, by the same command: a master that was demoted is to be left.
local function noteFull(bucket, full)
  local text = string.format("%d", full + 0.5)
  local fault = redis.pcall("SET", bucket, text, "PX", keepMs).err
  if not fault then return end
  -- Before version 7 the place in the script stands before the word.
  local word = fault:match("^@[^-]*%-(%u+) ") or fault:match("^(%u+) ")
  if word == "OOM" or word == "MISCONF" or word == "NOREPLICAS" then return end
  redis.call("SET", bucket, text, "PX", keepMs)
end

-- Takes so many requests out of the bucket, or as many as it holds. Gives how many it took, how many are left
-- then, and in how many ms the next one is there.
local function takeFrom(bucket, perMinute, count)
  local at = clock[1] * 1000000 + clock[2]
  local kept = tonumber(redis.call("GET", bucket) or 0)
  -- One further ahead was written before Redis's clock went back: it is empty, and is refilled from now on.
  local full = math.min(math.max(kept, at), at + minute)
  local held = math.floor((at + minute - full) * perMinute / minute)
  local taken = math.min(count, held)
  if taken > 0 or kept > at + minute then
    full = full + taken * minute / perMinute
    noteFull(bucket, full)
  end
  return taken, held - taken, math.max(0, math.ceil((full + minute / perMinute - at - minute) / 1000))
end

-- Takes one where there may be no rate. Gives whether it is let in, and what is told of the rate: nothing
-- where there is none, else how many are left, or where there was none left the ms until the next is there.
local function takeOne(bucket, perMinute)
  if perMinute == "" then return true, "" end
  local taken, left, waitMs = takeFrom(bucket, tonumber(perMinute), 1)
  return taken == 1, string.format("%d", taken == 1 and left or waitMs)
end
