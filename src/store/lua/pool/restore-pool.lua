-- restore-pool: write the record of a pool that Redis has forgotten, as a node's journal has it.
-- KEYS  pool templates nodeStamps
-- ARGV  fields templates restMs
-- REPLY restored, there
-- `fields` and `templates` are JSON maps. For `restMs` nothing is launched: others have browsers of it, too.
--- @include pool
--- @include write-record

-- What tells of the moment, of nodes as they were then, and of the Redis that there was.
local passing = {
  "closed", "failing", "hold", "obstacle", "asked", "lastError", "refreshedTo", "aheadSave", "aheadSeenAt",
  "boundFrom", "boundTo", "boundAt", "discards", "replicationId", "run", "serverCheckedAt", "epochSequence",
  "indexing", "reapedWaiters",
}

local given = cjson.decode(A.fields)
local state, revision, restoredAs = unpack(poolFields("state", "revision", "restoredAs"))
-- One of two nodes may have missed a change: the higher revision counts, unless the pool was changed since.
local isOlder = restoredAs and restoredAs == revision and tonumber(given.revision) > tonumber(revision)
if state and not isOlder then return plain("there") end

for _, field in ipairs(passing) do given[field] = nil end
local sequence = tonumber(poolFields("sequence")[1] or 0)
given.sequence = math.max(tonumber(given.sequence or 0), sequence)
for field, value in pairs(given) do redis.call("HSET", K.pool, field, value) end
redis.call("HSET", K.pool, "restoredAs", given.revision or "")
stampRevision()
if given.kind == "pool" then
  redis.call("HSET", K.pool,
    "tokens", math.ceil(tonumber(given.size) * tonumber(given.fillRate) / 100), "tokensAt", now,
    "credit", 0, "failures", 0, "backoffUntil", now + tonumber(A.restMs), "lastError", "", "hold", "")
end
for key, template in pairs(cjson.decode(A.templates)) do redis.call("HSETNX", K.templates, key, template) end
return plain("restored")
