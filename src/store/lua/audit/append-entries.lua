-- append-entries: put a batch of entries at the end of the audit log, in their order; a batch that was taken
-- before changes nothing.
-- KEYS  auditStream auditState auditWriter auditIntents
-- ARGV  number entries intents mostBytes longestMs
-- REPLY appended, full (nothing of it was taken)
-- `entries`: a line for each, with the request's age in ms, a space, and the row that is kept as it is.
-- `intents`: ids of those that are carried out with these entries, with spaces between.
--- @include base
--- @include organization/audit-stream

-- Longer than a writer may take to send a batch once more.
local writerMs = 7200000
if tonumber(redis.call("GET", K.auditWriter) or 0) >= tonumber(A.number) then return plain("appended") end
if isFull(A.mostBytes) then return plain("full") end
local entries = {}
for age, row in A.entries:gmatch("(%d+) ([^\n]+)") do table.insert(entries, { at = now - age, row = row }) end
addEntries(entries, A.longestMs)
for id in A.intents:gmatch("%S+") do redis.call("HDEL", K.auditIntents, id) end
redis.call("SET", K.auditWriter, A.number, "PX", writerMs)
return plain("appended")
