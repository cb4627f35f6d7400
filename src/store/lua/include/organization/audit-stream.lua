-- audit-stream: entries at the end of the audit log, and what is known of the stream that has them.

-- What a stream needs for an entry beside its row.
local entryBytes = 60
-- A position has six digits for it, and nobody adds more entries at once than there are left.
local mostPerInstant = 900000
-- Nobody needs to know that positions are ahead of the clock by less.
local leastAheadMs = 1000

-- Readers look so much further than `longestMs` after the end of a range for what was received in it:
-- positions are ahead of a clock that was set back, and the entry of a change whose control has died comes
-- late.
local function noteAhead(at, oldest, longestMs)
  local aheadMs = at - now
  if aheadMs <= leastAheadMs then aheadMs = 0 end
  aheadMs = math.max(aheadMs, at - oldest - longestMs)
  if aheadMs > tonumber(redis.call("HGET", K.auditState, "aheadMs") or 0) then
    redis.call("HSET", K.auditState, "aheadMs", string.format("%.0f", aheadMs))
  end
end

-- Each entry has `at`, the instant at which its request was received, and `row`, which is kept as it is. Most
-- have their position within `longestMs` of it.
local function addEntries(entries, longestMs)
  if #entries == 0 then return end
  -- The last one's instant and its number among those of that instant; the instant stays what it is while the
  -- clock is behind it.
  local last
  local oldest, bytes = entries[1].at, 0
  for _, entry in ipairs(entries) do
    local received = string.format("%d", entry.at)
    last = redis.call("XADD", K.auditStream, "*", "at", received, "entry", entry.row)
    oldest = math.min(oldest, entry.at)
    bytes = bytes + entryBytes + #entry.row
  end
  local at, number = last:match("^(%d+)-(%d+)$")
  if tonumber(number) > mostPerInstant then
    redis.call("XSETID", K.auditStream, string.format("%.0f-0", at + 1))
  end
  noteAhead(tonumber(at), oldest, tonumber(longestMs))
  redis.call("HINCRBY", K.auditState, "bytes", bytes)
end

local function isFull(mostBytes)
  return tonumber(redis.call("HGET", K.auditState, "bytes") or 0) >= tonumber(mostBytes)
end

-- Where the log has come to: the instant of its last position, entries that were taken out since included.
local function reachedAt()
  if redis.call("EXISTS", K.auditStream) == 0 then return 0 end
  local told = redis.call("XINFO", "STREAM", K.auditStream)
  for index = 1, #told, 2 do
    if told[index] == "last-generated-id" then return tonumber(told[index + 1]:match("^%d+")) end
  end
end

-- Nothing comes into the log at an instant or before it any more, also where the clock is set back.
local function closeThrough(at)
  if redis.call("EXISTS", K.auditStream) == 0 or at < reachedAt() then return end
  redis.call("XSETID", K.auditStream, string.format("%.0f-0", at + 1))
end
