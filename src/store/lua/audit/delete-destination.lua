-- delete-destination: deliver to a destination no more. Its record stays, so that what the log says of its id
-- can be told, until there are too many of those.
-- KEYS  destinations
-- ARGV  id request most
-- REPLY deleted, missing
--- @include base
--- @include organization/destinations

local destination = readDestination(A.id)
if not destination then return plain("missing") end
-- The same request again, whose first answer was lost on its way.
if destination.deletedIn == A.request then return plain("deleted") end
if destination.deletedAt then return plain("missing") end
destination.deletedAt, destination.deletedIn = now, A.request
destination.status, destination.cursor, destination.nextAttemptAt = "paused", nil, nil
destination.revision = destination.revision + 1
writeDestination(destination)
local deleted = {}
for _, text in ipairs(redis.call("HVALS", K.destinations)) do
  local other = cjson.decode(text)
  if other.deletedAt then table.insert(deleted, other) end
end
table.sort(deleted, function(one, other) return one.deletedAt > other.deletedAt end)
for index = tonumber(A.most) + 1, #deleted do redis.call("HDEL", K.destinations, deleted[index].id) end
return plain("deleted")
