-- claims: each names one attempt; a job whose claim is not the record's does nothing.
--- @include base
--- @include pool

-- Also a time: a failover that lost the last ones gives their numbers once more, and a report under an
-- earlier claim is no word about a later.
local function claim(browser)
  browser.claim = string.format("%.0f-%d", now, nextNumber("sequence"))
end
