-- settle-intents: make entries of intents of which nothing was heard for long, also where the log is full.
-- KEYS  auditStream auditState auditIntents
-- ARGV  silentMs longestMs
-- REPLY settled (how many)
--- @include base
--- @include organization/audit-stream

local intents, entries = redis.call("HGETALL", K.auditIntents), {}
for index = 1, #intents, 2 do
  local noted, at, row = intents[index + 1]:match("^(%d+) (%d+) (.+)$")
  if tonumber(noted) + tonumber(A.silentMs) <= now then
    table.insert(entries, { at = tonumber(at), row = row, id = intents[index] })
  end
end
table.sort(entries, function(one, other) return one.at < other.at end)
addEntries(entries, A.longestMs)
for _, entry in ipairs(entries) do redis.call("HDEL", K.auditIntents, entry.id) end
return plain("settled", tostring(#entries))
