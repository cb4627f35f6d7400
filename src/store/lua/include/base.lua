-- base: the time, and the form of an answer: its word, its payload, the time, what is left to do.

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function plain(kind, payload)
  return { kind, payload or "", tostring(now), "" }
end
