-- moves: the table of moves (pool/browser.ts holds the same) and the one function that makes a move.
--- @include changes
--- @include index
--- @include pool
--- @include events
--- @include ranks

local moves = {
  launching = "idle retiring",
  idle = "leased retiring",
  leased = "idle resetting retiring",
  resetting = "idle retiring",
  retiring = "gone",
}
local stateKeys = {
  launching = K.launching, idle = K.idle, leased = K.leased, resetting = K.resetting, retiring = K.retiring,
}

-- Gives the record's text. `score` is the deadline of the claim for launching, resetting and retiring; for
-- leased the browser's creation, the order of lists.
local function move(browser, to, why, score)
  local from = browser.state
  if not moves[from]:find(to, 1, true) then error("no move from " .. from .. " to " .. to) end
  -- One that was discarded stands elsewhere (discards).
  if redis.call("ZREM", stateKeys[from], browser.id) == 0 then redis.call("ZREM", K.discarded, browser.id) end
  event(browser, from, to, why)
  if to == "gone" then
    forgetBrowser(browser)
    addEffect("gone", { browser = browser.id, node = browser.node })
    return
  end
  if to == "retiring" then removeFromIndexes(browser) end
  if to == "idle" then
    browser.claim, browser.mode, browser.fence = nil, nil, nil
    score = idleScore(browser)
  end
  return enter(browser, to, stateKeys[to], score)
end
