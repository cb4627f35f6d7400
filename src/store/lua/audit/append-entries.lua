-- append-entries: put a batch of entries at the end of the audit log, in their order; a batch that was taken
-- before changes nothing.
-- KEYS  auditStream auditState auditWriter
-- ARGV  number entries mostBytes
-- REPLY appended, full (nothing of it was taken)
-- `entries` is a JSON list of lists: the request's age in ms, then texts in the order of the columns below.
--- @include base

-- Longer than a writer may take to send a batch once more.
local writerMs = 3600000
-- What a stream needs for an entry beside its values.
local entryBytes = 60
if tonumber(redis.call("GET", K.auditWriter) or 0) >= tonumber(A.number) then return plain("appended") end
if tonumber(redis.call("HGET", K.auditState, "bytes") or 0) >= tonumber(A.mostBytes) then return plain("full") end
local bytes = 0
for _, entry in ipairs(cjson.decode(A.entries)) do
  local age, strategy, user, email, status, method, path, route, domain, duration, ip, agent = unpack(entry)
  redis.call("XADD", K.auditStream, "*", "at", string.format("%.0f", now - age), "strategy", strategy,
    "user", user, "email", email, "status", status, "method", method, "path", path, "route", route,
    "domain", domain, "duration", duration, "ip", ip, "agent", agent)
  bytes = bytes + entryBytes + #strategy + #user + #email + #method + #path + #route + #domain + #ip + #agent
end
redis.call("HINCRBY", K.auditState, "bytes", bytes)
redis.call("SET", K.auditWriter, A.number, "PX", writerMs)
return plain("appended")
