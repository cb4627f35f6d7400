-- ranks: the line of idle browsers: those of the freshest generation first and among them the longest idle,
-- replaceable ones after all others; behind these those of closed nodes.
--- @include browser/browsers
--- @include pool

local perGeneration, replaceableScore = 4294967296, 2251799813685248
-- 2^52, so that no digit of a score is lost.
local apart = 4503599627370496

local function scoreAt(sequence, browser)
  local score = sequence - browser.generation * perGeneration
  return browser.replaceable and score + replaceableScore or score
end

local function idleScore(browser)
  return scoreAt(nextNumber("sequence"), browser)
end

-- Where replaceable ones stand: on closed nodes they come last of all; those of closed nodes that are not
-- replaceable come between the two.
local function replaceableScores()
  return { { apart + replaceableScore / 2, "+inf" }, { replaceableScore / 2, apart - replaceableScore / 2 } }
end

-- One that goes as soon as another has taken its place, and is idle; nil where none is.
local function replaceableIdle()
  for _, scores in ipairs(replaceableScores()) do
    local id = redis.call("ZREVRANGEBYSCORE", K.idle, scores[2], scores[1], "LIMIT", 0, 1)[1]
    if id then return read(id) end
  end
end
