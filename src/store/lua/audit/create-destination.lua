-- create-destination: keep a new export destination, paused, where there are not as many as there may be.
-- KEYS  destinations
-- ARGV  record most
-- REPLY created (its record), many
--- @include base
--- @include organization/destinations

local given = cjson.decode(A.record)
local kept = readDestination(given.id)
if kept then return plain("created", cjson.encode(kept)) end
local living = 0
for _, text in ipairs(redis.call("HVALS", K.destinations)) do
  if not cjson.decode(text).deletedAt then living = living + 1 end
end
if living >= tonumber(A.most) then return plain("many") end
given.status, given.revision, given.failures = "paused", 1, 0
given.createdAt, given.updatedAt = now, now
return plain("created", writeDestination(given))
