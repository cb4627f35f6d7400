-- read-events: some events of a lease's stream, in either order.
-- KEYS  streamEvents streamState
-- ARGV  cursor order since sinceAgo before types categories limit maxBytes maxLooked
--       maxAgeMs
-- REPLY events (the next cursor, a space, and `more` or `end`; then a line for each, with its number and its
--       JSON)
-- `cursor`: strictly after it in the order asked for; empty: from the beginning of that. `since` and
-- `before`: Unix ms, empty without one; the first that is meant, and the first that is not. `sinceAgo`:
-- empty, or that `since` is so many ms ago by the caller's clock; where that is ahead, what is so by the
-- clock of whoever saw the events is meant as well. `types` and `categories`: with spaces between, empty for
-- all. No more than `maxLooked` are looked at, and the last of them is the one that goes beyond `maxBytes`,
-- whether they are meant or not: Redis copies each, and does nothing else meanwhile. What was stored longer
-- ago than `maxAgeMs`, or than the writer's, is gone for readers; Redis lets it go with the next batch only.
--- @include base

local isAsc = A.order == "asc"
local function setOf(words)
  local set
  for word in words:gmatch("%S+") do
    set = set or {}
    set[word] = true
  end
  return set
end
local types, categories = setOf(A.types), setOf(A.categories)
local since, before = tonumber(A.since) or 0, tonumber(A.before) or math.huge

-- Lua writes numbers of more than 14 digits with an exponent, which is no id.
local function idOf(number) return ("%.0f-0"):format(number) end
local function entryFrom(number)
  return redis.call("XRANGE", K.streamEvents, idOf(number), "+", "COUNT", 1)[1]
end
local function numberOf(entry) return tonumber(entry[1]:match("^%d+")) end

-- What an earlier build has stored is found by when it was put there.
local function latestOf(entry) return tonumber(entry[2][10] or entry[2][2] * 1000) end

-- Now, by the clock of whoever saw the last event: since it was put there, Redis's has gone on by so much.
local function nowThere()
  local entry = redis.call("XREVRANGE", K.streamEvents, "+", "-", "COUNT", 1)[1]
  if not entry then return now end
  return tonumber(entry[2][8]:match('^{"ts":(%d+)')) / 1000 + math.max(0, now - tonumber(entry[2][2]))
end
if A.sinceAgo ~= "" then since = math.min(since, math.max(0, nowThere() - tonumber(A.sinceAgo))) end

-- The number of the first event that has `instant` or a later one: what is before it is not meant.
local function firstAt(instant)
  local low = entryFrom(0)
  if not low then return 0 end
  local from, to = numberOf(low), tonumber(redis.call("HGET", K.streamState, "seq") or 0) + 1
  while from < to do
    local middle = math.floor((from + to) / 2)
    local entry = entryFrom(middle)
    if not entry or latestOf(entry) >= instant * 1000 then to = middle else from = numberOf(entry) + 1 end
  end
  return from
end

local cursor = tonumber(A.cursor)
if not cursor and isAsc then cursor = since > 0 and math.max(0, firstAt(since) - 1) or 0 end
local atOnce = 4
local function some()
  if isAsc then return redis.call("XRANGE", K.streamEvents, "(" .. idOf(cursor), "+", "COUNT", atOnce) end
  local last = cursor and "(" .. idOf(cursor) or "+"
  return redis.call("XREVRANGE", K.streamEvents, last, "-", "COUNT", atOnce)
end

local writersAge = redis.call("HGET", K.streamState, "maxAgeMs") or math.huge
local maxAge = math.min(tonumber(A.maxAgeMs), tonumber(writersAge))
local function isKept(entry) return tonumber(entry[2][2]) >= now - maxAge end
-- Before what is too old there is nothing that is not.
local function isBeyond(entry) return not isAsc and not isKept(entry) end

-- Its own time counts, in ms.
local function isMeant(fields)
  if types and not types[fields[4]] or categories and not categories[fields[6]] then return false end
  local ts = tonumber(fields[8]:match('^{"ts":(%d+)')) / 1000
  return ts >= since and ts < before
end

local limit, maxBytes, maxLooked = tonumber(A.limit), tonumber(A.maxBytes), tonumber(A.maxLooked)
local lines, bytes, looked = {}, 0, 0
local function isFull() return #lines >= limit or bytes >= maxBytes or looked >= maxLooked end
local function look(entry)
  cursor, looked, bytes = numberOf(entry), looked + 1, bytes + #entry[2][8]
  if not isKept(entry) or not isMeant(entry[2]) then return end
  table.insert(lines, idOf(cursor):sub(1, -3) .. " " .. entry[2][8])
end

local isOver = false
while not isOver and not isFull() do
  local entries = some()
  isOver = #entries < atOnce
  for _, entry in ipairs(entries) do
    if isFull() then
      isOver = false
      break
    end
    if isBeyond(entry) then
      isOver = true
      break
    end
    look(entry)
  end
  -- As many as may be looked at yet, by what those so far have.
  atOnce = math.max(1, math.min(64, math.floor((maxBytes - bytes) / (bytes / math.max(1, looked) + 1))))
end
-- Whether the page happens to end where the events do is looked up, so that nobody asks for an empty page.
atOnce = 1
local following = not isOver and some()[1]
local hasMore = following and not isBeyond(following)
local first = idOf(cursor or 0):sub(1, -3) .. (hasMore and " more" or " end")
return plain("events", first .. "\n" .. table.concat(lines, "\n"))
