-- failing-nodes: the nodes on which this pool's launches fail, kept apart from the pool's own backoff: one
-- sick node holds up nobody else.
--- @include base
--- @include pool

-- Gives {failures, failedAt, restsUntil, error, diedAt?, trial?} by node; `trial` is the one browser that is
-- launched there to see whether launches work again.
local function failingNodes()
  local text = poolFields("failing")[1]
  return text and cjson.decode(text) or {}
end

local function keepFailing(nodes)
  if next(nodes) then
    redis.call("HSET", K.pool, "failing", cjson.encode(nodes))
  else
    redis.call("HDEL", K.pool, "failing")
  end
end

-- Whether nothing is launched there now.
local function isResting(node)
  if node.restsUntil > now then return true end
  local text = node.trial and redis.call("HGET", K.browsers, node.trial)
  return text and cjson.decode(text).state == "launching" or false
end

-- A node on which launches fail is tried with one.
local function mayTry(nodes, browser)
  local node = nodes[browser.node]
  if not node then return true end
  if isResting(node) then return false end
  node.trial = browser.id
  return true
end
