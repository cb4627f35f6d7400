-- undo-lease: taking back a lease that no client has opened.
--- @include endings
--- @include grants

-- Takes a browser back without a reset, unless a `start_url` has moved it off its page or a PATCH has touched
-- it.
local function takeBack(browser)
  local terms = poolTerms()
  if terms.kind == "on-demand" or browser.lease.altered then return retire(browser, "unwanted") end
  if browser.lease.startUrl or browser.lease.touched then
    if terms.reset == "relaunch" then return retire(browser, "released", true) end
    return fence(browser, "undone", "state")
  end
  dropLease(browser, "undone")
  settle(browser, "undone", terms)
end
