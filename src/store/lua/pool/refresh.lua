-- refresh: retire idle browsers that were claimed before an instant, some at a time; they are replaced at the
-- fill rate.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  before from isClean atOnce eventsKept
-- REPLY refreshed (JSON {from?, isClean}: where to go on, absent at the end), missing
-- `before` is the instant at which the pool's profile was saved, by Redis's clock as it was then. `from` is
-- the score in line of the last that the piece before has looked at, empty for the first; `isClean` is that
-- piece's own.
--- @include endings
--- @include credit
--- @include browser/saves

local lookedAtOnce = 200

local first = earlierAnswer()
if first then return first end

boundSaves()
local state, refreshedFrom, refreshedTo, boundAt, size, credit =
  unpack(poolFields("state", "refreshedFrom", "refreshedTo", "boundAt", "size", "credit"))
if state ~= "open" then return plain("missing") end
local savedAt = tonumber(A.before)

-- A save from before Redis's clock went back lies ahead: it counts as made when it was first met here, also
-- once the clock has caught up.
local function savedBy()
  local save, seenAt = unpack(poolFields("aheadSave", "aheadSeenAt"))
  if tonumber(save) == savedAt and tonumber(seenAt) <= now then return tonumber(seenAt) end
  if savedAt <= now then return savedAt end
  redis.call("HSET", K.pool, "aheadSave", A.before, "aheadSeenAt", now)
  return now
end
local before = savedBy()
local isDone = before <= (tonumber(refreshedTo) or 0)
-- Where the pool came to follow a profile only after that, nothing of it was updated since. And the same save
-- is asked for again and again until all browsers that are older are gone.
if isDone or before <= (tonumber(refreshedFrom) or 0) then
  -- Remembered, since the other instant is forgotten where the clock goes back.
  if not isDone then redis.call("HSET", K.pool, "refreshedTo", before) end
  return plain("refreshed", cjson.encode({ isClean = true }))
end

-- A browser that lay ahead is of before the clock went back, and has the instant at which that was put right
-- (ahead). A save that was made in between is newer than it, though its instant is less.
boundAt = tonumber(boundAt) or 0
local olderThan = before <= boundAt and boundAt <= now and boundAt + 1 or before
local function isOlder(text)
  if not text then return false end
  local claimedAt = tonumber(text:match('"createdAt":(%d+)'))
  -- One that lies ahead still is older than a save by the present clock; another save is of its own clock.
  if claimedAt > now then return savedAt <= now or claimedAt < savedAt end
  return claimedAt < olderThan
end
local function isAnyOlder(key)
  if redis.call("ZCARD", key) > lookedAtOnce then return true end
  local ids = redis.call("ZRANGE", key, 0, -1)
  if #ids == 0 then return false end
  for _, text in ipairs(redis.call("HMGET", K.browsers, unpack(ids))) do
    if isOlder(text) then return true end
  end
  return false
end
-- Leased browsers go by their age.
local function isOneInUse()
  local ahead = savedAt > now and "(" .. savedAt or "+inf"
  return redis.call("ZCOUNT", K.leased, "-inf", "(" .. olderThan) > 0
    or redis.call("ZCOUNT", K.leased, "(" .. now, ahead) > 0
    or isAnyOlder(K.launching)
    or isAnyOlder(K.resetting)
end

local range = A.from == "" and "-inf" or "(" .. A.from
local line = redis.call("ZRANGEBYSCORE", K.idle, range, "+inf", "WITHSCORES", "LIMIT", 0, lookedAtOnce)
local ids, scores = {}, {}
for place = 1, #line, 2 do
  table.insert(ids, line[place])
  table.insert(scores, line[place + 1])
end
local texts = #ids > 0 and redis.call("HMGET", K.browsers, unpack(ids)) or {}
-- What is left of earlier rebuilds pays for nothing that is flushed.
if tonumber(credit) > 0 then boundCredit(tonumber(size), tonumber(credit)) end
local retired, looked = 0, 0
while looked < #ids and retired < tonumber(A.atOnce) do
  looked = looked + 1
  if isOlder(texts[looked]) then
    retire(cjson.decode(texts[looked]), "flushed")
    retired = retired + 1
  end
end
local isEnd = looked == #ids and #ids < lookedAtOnce
-- What is in use comes back behind a walk of several pieces, so that such a one tells only where it has found
-- nothing to do.
local isWhole = A.from == "" and isEnd
local isClean = (A.from == "" or A.isClean == "1") and retired == 0 and not isOneInUse()
if isEnd and (isClean or isWhole and not isOneInUse()) then
  redis.call("HSET", K.pool, "refreshedTo", before)
end
local from = not isEnd and string.format("%.0f", scores[looked]) or nil
local answer = cjson.encode({ from = from, isClean = isClean })
return retired > 0 and finish("refreshed", answer) or plain("refreshed", answer)
