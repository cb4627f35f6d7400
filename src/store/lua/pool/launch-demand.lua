-- launch-demand: how many launches a fill would claim now, if there were room; notes what holds the pool up
-- where that is none.
-- KEYS  pool browsers retiring discarded replaceable
-- ARGV  most maxMs
-- REPLY wanted (JSON {count, resting, trying, failedLately}: nodes on which the pool's launches fail, now
--       left alone, or tried with one; whether one has failed within the longest backoff, `maxMs`)
--- @include tokens
--- @include node/failing-nodes
--- @include counts

local size, rate, credit, backoff, state, unsupported, held =
  unpack(poolFields("size", "fillRate", "credit", "backoffUntil", "state", "unsupported", "hold"))
if state ~= "open" or unsupported ~= "" then return plain("wanted", '{"count":0}') end
local short = tonumber(size) + replaceableCount() - liveCount()
local function hold(reason)
  -- Every pool is asked every second, and each write goes to replicas and files as well.
  if held ~= reason then redis.call("HSET", K.pool, "hold", reason) end
  return plain("wanted", '{"count":0}')
end
if short <= 0 then return hold("") end
if tonumber(backoff) > now then return hold("launch_failing") end
local means = math.floor(refill(tonumber(size), tonumber(rate))) + math.max(0, tonumber(credit))
if means < 1 then return hold(tonumber(rate) == 0 and "rate_zero" or "rate") end
-- Where there are means, the claim that follows says what held it up.
local count = math.min(short, means, tonumber(A.most))
redis.call("HSET", K.pool, "asked", count)
local resting, trying, failedLately
for id, node in pairs(failingNodes()) do
  failedLately = failedLately or now - (node.failedAt or 0) < tonumber(A.maxMs)
  if isResting(node) then
    resting = resting or {}
    table.insert(resting, id)
  else
    trying = trying or {}
    table.insert(trying, id)
  end
end
return plain("wanted", cjson.encode({
  count = count, resting = resting, trying = trying, failedLately = failedLately,
}))
