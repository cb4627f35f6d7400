-- append-entries: put a batch of entries at the end of the audit log, in their order; a batch that was taken
-- before changes nothing.
-- KEYS  auditStream auditState auditWriter
-- ARGV  number entries mostBytes
-- REPLY appended, full (nothing of it was taken)
-- `entries`: a line for each, with the request's age in ms, a space, and the row that is kept as it is.
--- @include base

-- Longer than a writer may take to send a batch once more.
local writerMs = 3600000
-- What a stream needs for an entry beside its row.
local entryBytes = 60
-- A position has six digits for it, and a batch has fewer entries than there are left.
local mostPerInstant = 900000
-- Nobody needs to know of less.
local leastAheadMs = 1000
if tonumber(redis.call("GET", K.auditWriter) or 0) >= tonumber(A.number) then return plain("appended") end
if tonumber(redis.call("HGET", K.auditState, "bytes") or 0) >= tonumber(A.mostBytes) then return plain("full") end
-- The instant of the stream's last entry and its number among those of that instant; the instant stays what it
-- is while the clock is behind it.
local at, number = 0, 0
local bytes = 0
for age, row in A.entries:gmatch("(%d+) ([^\n]+)") do
  local id = redis.call("XADD", K.auditStream, "*", "at", string.format("%.0f", now - age), "entry", row)
  at, number = id:match("^(%d+)-(%d+)$")
  bytes = bytes + entryBytes + #row
end
if tonumber(number) > mostPerInstant then
  redis.call("XSETID", K.auditStream, string.format("%.0f-0", at + 1))
end
-- Readers look so much further for what was received in their range.
local aheadMs = tonumber(at) - now
if aheadMs > math.max(leastAheadMs, tonumber(redis.call("HGET", K.auditState, "aheadMs") or 0)) then
  redis.call("HSET", K.auditState, "aheadMs", string.format("%.0f", aheadMs))
end
redis.call("HINCRBY", K.auditState, "bytes", bytes)
redis.call("SET", K.auditWriter, A.number, "PX", writerMs)
return plain("appended")
