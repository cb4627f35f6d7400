-- recycle: mark browsers that are old or worn, so that their replacement is warmed first (on rebuild credit).
-- KEYS  pool browsers launching idle leased resetting retiring leases provisional worn graves spent events answer
-- ARGV  maxLeases node eventsKept
-- REPLY recycled (how many were marked)
-- With `node`, every browser of that node is marked: it drains.
--- @include ends

local first = again()
if first then return first end

local size, state, kind, hold = unpack(poolFields("size", "state", "kind", "hold"))
if state ~= "open" or kind ~= "pool" then return plain("recycled", "0") end
-- Where no room is left for a replacement, one goes before its replacement comes.
if hold == "capacity" then
  for _, id in ipairs(redis.call("SMEMBERS", K.worn)) do
    local browser = read(id)
    if browser and browser.state == "idle" then
      retire(browser, "recycled", true)
      break
    end
  end
end
-- At most a quarter of the pool at a time, so that a pool filled at once is not rebuilt at once.
local most = A.node ~= "" and 1000000 or math.max(1, math.floor(tonumber(size) / 4))
local marked = 0
local function isWorn(browser)
  if A.node ~= "" then return browser.node == A.node end
  if browser.recycleAt and now >= browser.recycleAt then return true end
  return A.maxLeases ~= "" and browser.served >= tonumber(A.maxLeases)
end
local function mark(browser)
  browser.worn = true
  redis.call("SADD", K.worn, browser.id)
  addCredit(1)
  if browser.state == "idle" then redis.call("ZADD", K.idle, idleScore(browser), browser.id) end
  write(browser)
  marked = marked + 1
end
for _, key in ipairs({ K.idle, K.leased, K.resetting }) do
  for _, id in ipairs(redis.call("ZRANGE", key, 0, -1)) do
    local browser = read(id)
    if not browser.worn and redis.call("SCARD", K.worn) < most and isWorn(browser) then mark(browser) end
  end
end
return finish("recycled", tostring(marked))
