-- refresh: retire idle browsers that were claimed before an instant, some at a time; they are replaced at the
-- fill rate.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  before from isClean atOnce eventsKept
-- REPLY refreshed (JSON {from?, isClean}: where to go on, absent at the end), missing
-- `before` is an instant of ours, at which the pool's profile was saved. `from` is the score in line of the
-- last that the piece before has looked at, empty for the first; `isClean` is that piece's own.
--- @include endings

local lookedAtOnce = 200

local first = earlierAnswer()
if first then return first end

local state, refreshedFrom, refreshedTo = unpack(poolFields("state", "refreshedFrom", "refreshedTo"))
if state ~= "open" then return plain("missing") end
local before = tonumber(A.before)
local isDone = before <= (tonumber(refreshedTo) or 0)
-- Where the pool came to follow a profile only after that, nothing of it was updated since. And the same save
-- is asked for again and again until all browsers that are older are gone.
if isDone or before <= (tonumber(refreshedFrom) or 0) then
  return plain("refreshed", cjson.encode({ isClean = true }))
end

local function claimedAt(text) return text and tonumber(text:match('"createdAt":(%d+)')) or now end
local function isAnyOlder(key)
  if redis.call("ZCARD", key) > lookedAtOnce then return true end
  local ids = redis.call("ZRANGE", key, 0, -1)
  if #ids == 0 then return false end
  for _, text in ipairs(redis.call("HMGET", K.browsers, unpack(ids))) do
    if claimedAt(text) < before then return true end
  end
  return false
end
-- Leased browsers go by their age.
local function isOneInUse()
  return redis.call("ZCOUNT", K.leased, "-inf", "(" .. before) > 0
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
local retired, looked = 0, 0
while looked < #ids and retired < tonumber(A.atOnce) do
  looked = looked + 1
  if claimedAt(texts[looked]) < before then
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
  redis.call("HSET", K.pool, "refreshedTo", A.before)
end
local from = not isEnd and string.format("%.0f", scores[looked]) or nil
local answer = cjson.encode({ from = from, isClean = isClean })
return retired > 0 and finish("refreshed", answer) or plain("refreshed", answer)
