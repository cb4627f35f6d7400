-- note-intent: put on record that a change is about to be made, until its entry is there.
-- KEYS  auditState auditIntents
-- ARGV  id age row mostIntents mostBytes
-- REPLY noted, full (nothing was noted)
-- `age` is the request's in ms, `row` that of the entry if nothing more is heard of it.
--- @include base
--- @include organization/audit-stream

if isFull(A.mostBytes) then return plain("full") end
if redis.call("HLEN", K.auditIntents) >= tonumber(A.mostIntents) then return plain("full") end
redis.call("HSET", K.auditIntents, A.id, string.format("%.0f %.0f %s", now, now - A.age, A.row))
return plain("noted")
