-- claim-launches: claim as many launches as the pool lacks and tokens, credit and backoff allow.
-- KEYS  pool templates browsers launching retiring discarded replaceable events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  candidates madeFor obstacle claimMs eventsKept
-- REPLY claimed (JSON list of browsers), none
-- `candidates` is a JSON list of browsers to be, for which room on their node is reserved: as browsers of the
-- launch template `madeFor` need it, empty for any. `obstacle` is why nodes that might have room launch
-- nothing, for the pool object.
--- @include changes
--- @include index
--- @include pool
--- @include tokens
--- @include node/failing-nodes
--- @include credit
--- @include events
--- @include claims

local mostObstacle = 1500

local first = earlierAnswer()
if first then return first end

local size, rate, credit, backoff, state, unsupported, generation, network, template, asked, templateKey =
  unpack(poolFields(
    "size", "fillRate", "credit", "backoffUntil", "state", "unsupported", "generation", "networkGeneration",
    "template", "asked", "templateKey"
  ))
if state ~= "open" or unsupported ~= "" then return finish("none") end
if A.madeFor ~= "" and A.madeFor ~= templateKey then return finish("none") end
size, credit = tonumber(size), tonumber(credit)
local tokens = refill(size, tonumber(rate))
local short
credit, short = boundCredit(size, credit)
if short == 0 then
  redis.call("HSET", K.pool, "hold", "")
  return finish("none")
end
if tonumber(backoff) > now then
  redis.call("HSET", K.pool, "hold", "launch_failing")
  return finish("none")
end

local claimed, nodes = {}, failingNodes()
local function claimOne(browser)
  if credit > 0 then
    browser.paid, credit = "credit", credit - 1
    redis.call("HINCRBY", K.pool, "credit", -1)
  else
    browser.paid, tokens = "token", tokens - 1
    redis.call("HSET", K.pool, "tokens", tokens)
  end
  browser.state, browser.since, browser.createdAt, browser.served = "launching", now, now, 0
  browser.generation, browser.networkGeneration = tonumber(generation), tonumber(network)
  browser.templateKey = templateKey
  claim(browser)
  redis.call("ZADD", K.launching, now + tonumber(A.claimMs), browser.id)
  event(browser, "none", "launching", "fill")
  addBrowser(browser)
  table.insert(claimed, browser)
end
if redis.call("HEXISTS", K.templates, templateKey) == 0 then
  redis.call("HSET", K.templates, templateKey, template)
end
for _, browser in ipairs(cjson.decode(A.candidates)) do
  if short > 0 and (credit >= 1 or tokens >= 1) and mayTry(nodes, browser) then
    claimOne(browser)
    short = short - 1
  end
end
keepFailing(nodes)
local function holdReason()
  if short == 0 then return "" end
  if credit < 1 and tokens < 1 then return tonumber(rate) == 0 and "rate_zero" or "rate" end
  -- All that were asked for were found room for: the next fill goes on.
  if #claimed >= tonumber(asked or 0) then return "" end
  return "capacity"
end
local function obstacleNow()
  local texts = A.obstacle ~= "" and { A.obstacle } or {}
  for id, node in pairs(nodes) do
    local text = id .. ": " .. node.error
    if not A.obstacle:find(text:sub(1, 500), 1, true) then table.insert(texts, text) end
  end
  return table.concat(texts, "; "):sub(1, mostObstacle)
end
local hold = holdReason()
redis.call("HSET", K.pool, "hold", hold, "obstacle", obstacleNow())
if #claimed == 0 then return finish("none") end
return finish("claimed", cjson.encode(claimed))
