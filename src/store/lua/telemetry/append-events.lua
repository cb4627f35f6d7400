-- append-events: put a batch of events at the end of a lease's stream; a batch that was taken before changes
-- nothing, and is answered as it was then.
-- KEYS  streamEvents streamState streamWriter
-- ARGV  number after silentMs countedLost events maxBytes maxAgeMs keepMs numbersMs
-- REPLY appended (the number of the batch's last event, a space, and how many that had been stored are lost),
--       miscounted (how many are lost; nothing is stored)
-- `events`: a line for each, with its type, its category and its JSON, a space between each. Beyond
-- `maxBytes` and `maxAgeMs` the oldest go, of this batch too. What is left is kept for `keepMs` after the
-- last batch. `after`: the last number that the writer was told, `silentMs` ago. A failover or a restart may
-- have lost what was acknowledged, and then numbers go on after it: none is given twice. They are remembered
-- for `numbersMs`. To a writer that was silent for `keepMs` nothing is lost: it had gone. `countedLost`: how
-- many of those the batch itself tells of, or empty where it tells of none.
--- @include base

-- What Redis keeps of an event beside its JSON, roughly.
local entryBytes = 100
-- Longer than anybody sends a batch once more after it was taken.
local writerMs = 600000
local state = redis.call("HMGET", K.streamState, "seq", "bytes", "oldestAt", "latest")
local seq, bytes, oldestAt = tonumber(state[1] or 0), tonumber(state[2] or 0), tonumber(state[3] or now)
-- Another writer may have put events behind the batch since it was taken. Who sends it once more may not have
-- heard what was lost before it.
local taken, lastOfTaken, lostBefore =
  (redis.call("GET", K.streamWriter) or "0"):match("^(%d+) ?(%d*) ?(%d*)")
if tonumber(taken) >= tonumber(A.number) then
  return plain("appended", (tonumber(lastOfTaken) or seq) .. " " .. (tonumber(lostBefore) or 0))
end
local missing = math.max(0, tonumber(A.after) - seq)
local lost = tonumber(A.silentMs) < tonumber(A.keepMs) and missing or 0
if A.countedLost ~= "" and tonumber(A.countedLost) ~= lost then return plain("miscounted", lost) end
seq = seq + missing
if redis.call("EXISTS", K.streamEvents) == 0 then
  bytes, oldestAt = 0, now
end

-- The latest instant that an event up to there has, in us: it never goes back, whatever clocks do, so that
-- readers can search by it.
local latest = tonumber(state[4] or 0)
for type, category, json in A.events:gmatch("(%S+) (%S+) ([^\n]+)") do
  seq, latest = seq + 1, math.max(latest, tonumber(json:match('^{"ts":(%d+)')))
  redis.call("XADD", K.streamEvents, seq .. "-0", "at", now, "type", type, "category", category, "json", json,
    "latest", ("%.0f"):format(latest))
  bytes = bytes + #json + entryBytes
end

-- The first entry that stays, as far as these go; nil where all of them go. Gives when it was put there, too.
local maxBytes, since = tonumber(A.maxBytes), now - tonumber(A.maxAgeMs)
local function firstToStay(entries)
  for _, entry in ipairs(entries) do
    local at = tonumber(entry[2][2])
    if bytes <= maxBytes and at >= since then return entry[1], at end
    bytes = bytes - #entry[2][8] - entryBytes
  end
end

local function trim()
  local first
  local from = "-"
  while not first do
    local entries = redis.call("XRANGE", K.streamEvents, from, "+", "COUNT", 16)
    if #entries == 0 then break end
    first, oldestAt = firstToStay(entries)
    from = "(" .. entries[#entries][1]
  end
  redis.call("XTRIM", K.streamEvents, "MINID", first or (seq + 1) .. "-0")
  oldestAt = oldestAt or now
end

if bytes > maxBytes or oldestAt < since then trim() end
redis.call("HSET", K.streamState, "seq", seq, "bytes", bytes, "oldestAt", oldestAt,
  "latest", ("%.0f"):format(latest), "maxAgeMs", A.maxAgeMs)
redis.call("SET", K.streamWriter, A.number .. " " .. seq .. " " .. lost, "PX", writerMs)
redis.call("PEXPIRE", K.streamEvents, A.keepMs)
redis.call("PEXPIRE", K.streamState, A.numbersMs)
return plain("appended", seq .. " " .. lost)
