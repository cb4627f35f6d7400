-- changes: answers to repeats, and what is left to do outside Redis.
--- @include base

local answerMs = 10000

-- What the caller has still to carry out: jobs, names and rooms to give back. Each is repeated by a tick when
-- lost.
local effects
local function addEffect(kind, value)
  effects = effects or {}
  effects[kind] = effects[kind] or {}
  table.insert(effects[kind], value)
end
local function effectsText()
  return effects and cjson.encode(effects) or ""
end

-- The first answer to this request, so that a repeat changes nothing.
local function earlierAnswer()
  local first = redis.call("GET", K.answer)
  return first and { first:match("^(.-)\n(.*)\n(.-)\n(.-)$") }
end

-- Answers a change of state, and remembers the answer for a repeat; with `kept` in place of a payload that is
-- found again by it.
local function finish(kind, payload, kept)
  payload = payload or ""
  local at, left = string.format("%d", now), effectsText()
  -- JSON holds no line breaks, and to encode JSON as JSON once more would cost more than the change itself.
  redis.call("SET", K.answer, table.concat({ kind, kept or payload, at, left }, "\n"), "PX", answerMs)
  return { kind, payload, at, left }
end
