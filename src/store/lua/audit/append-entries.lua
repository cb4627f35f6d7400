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
if tonumber(redis.call("GET", K.auditWriter) or 0) >= tonumber(A.number) then return plain("appended") end
if tonumber(redis.call("HGET", K.auditState, "bytes") or 0) >= tonumber(A.mostBytes) then return plain("full") end
local bytes = 0
for age, row in A.entries:gmatch("(%d+) ([^\n]+)") do
  redis.call("XADD", K.auditStream, "*", "at", string.format("%.0f", now - age), "entry", row)
  bytes = bytes + entryBytes + #row
end
redis.call("HINCRBY", K.auditState, "bytes", bytes)
redis.call("SET", K.auditWriter, A.number, "PX", writerMs)
return plain("appended")
