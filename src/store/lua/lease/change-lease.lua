-- change-lease: change a live lease: its name, tags, start page or viewport; or ask its node for another
-- network.
-- KEYS  pool browsers nodeStamps answer
-- ARGV  browser lease change
-- REPLY touched (the browser), changed (the telemetry is another by now), superseded, unknown
-- `change` is JSON {set: {field: value}, clear: [field], touched: bool, altered?: bool, uploaded?: bool,
-- network?: {allowedHosts?, proxy?}, telemetry?: {text, over}}; a name was reserved before, the old one is
-- given back after. What is asked of the network is in force only when its node says so (applied).
--- @include changes
--- @include write-record
--- @include pool

local first = earlierAnswer()
if first then return first end

-- The stamp is another each time, whatever was lost.
local function nextRevision()
  redis.call("HSET", K.pool, "networkStamp", clock[1] .. "." .. clock[2])
  return nextInstant("networkChanges")
end

local browser = read(A.browser)
if not browser or not browser.lease then return plain("unknown") end
if A.lease ~= "" and A.lease ~= browser.lease.id then return plain("superseded") end
local change = cjson.decode(A.change)
local lease, name = browser.lease, browser.lease.name
if change.telemetry then
  -- It was merged over what the lease had then; nothing has changed where that is another by now.
  if (lease.telemetryRevision or 0) ~= change.telemetry.over then return plain("changed") end
  lease.telemetry = change.telemetry.text
  lease.telemetryRevision = math.max(now, change.telemetry.over + 1)
end
for field, value in pairs(change.set) do lease[field] = value end
for _, field in ipairs(change.clear) do lease[field] = nil end
-- What the node is asked for is activity from now on, though it may not have heard of it yet.
if change.touched then lease.touched, lease.registeredAt = true, now end
if change.altered then lease.altered = true end
-- An uploaded extension stays with the browser, whoever holds it.
if change.uploaded then browser.uploaded = true end
if change.network then
  local before, asked = lease.networkWanted or lease.network or {}, change.network
  lease.networkWanted = {
    revision = nextRevision(),
    allowedHosts = asked.allowedHosts or before.allowedHosts, proxy = asked.proxy or before.proxy,
  }
  -- A browser that a holder has sent through another proxy is nobody else's (docs/api.md#release).
  if asked.proxy then lease.altered = true end
end
if name and name ~= lease.name then addEffect("names", { name = name, owner = lease.id }) end
return finish("touched", write(browser))
