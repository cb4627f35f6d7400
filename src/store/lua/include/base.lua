-- base: the time, and the form of an answer: its word, its payload, the time, what is left to do.

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- The time in microseconds, for what is named or ordered by it: two answers may be within one millisecond.
local function microseconds()
  return string.format("%d", clock[1] * 1000000 + clock[2])
end

local function plain(kind, payload)
  return { kind, payload or "", string.format("%d", now), "" }
end
