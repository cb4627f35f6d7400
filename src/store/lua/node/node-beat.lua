-- node-beat: a node says that it lives, and what it is.
-- KEYS  beats facts version lost drains dataset
-- ARGV  node facts lostMs dataset
-- REPLY accepted (for how many ms it is still to drain; empty where it is not), lost (it was taken for lost,
--       and what it held is not cleared yet), taken (the facts of another that lives under its name), other
--       (Redis has another dataset than this, or none: nothing is written)
-- `dataset`: the name of the dataset that the node knows; empty where it is not compared.
-- Each start of a node has a `run` of its own. An earlier run of the same `origin` is known to be over: it
-- held the same data directory, on the same boot of its machine where Redis is not its own.
--- @include base

if A.dataset ~= "" and redis.call("GET", K.dataset) ~= A.dataset then return plain("other") end
if redis.call("SISMEMBER", K.lost, A.node) == 1 then return plain("lost") end
local text = redis.call("HGET", K.facts, A.node)
-- Nearly each beat says the same again, and costs no more than that.
if text ~= A.facts then
  local beat = tonumber(redis.call("ZSCORE", K.beats, A.node) or "0")
  if text and now - beat <= tonumber(A.lostMs) then
    local own, other = cjson.decode(A.facts), cjson.decode(text)
    if own.run ~= other.run and own.origin ~= other.origin then
      -- A beat from before the clock went back counts as a beat of now, as in lose-nodes.
      if beat > now then redis.call("ZADD", K.beats, now, A.node) end
      return plain("taken", text)
    end
  end
  redis.call("INCR", K.version)
  redis.call("HSET", K.facts, A.node, A.facts)
end
redis.call("ZADD", K.beats, now, A.node)
local drainsUntil = redis.call("HGET", K.drains, A.node)
return plain("accepted", drainsUntil and tostring(math.max(0, drainsUntil - now)))
