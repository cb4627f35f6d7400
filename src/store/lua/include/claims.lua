-- claims: each names one attempt; a job whose claim is not the record's does nothing.
--- @include base
--- @include pool

-- The number has a time in it: a failover that lost the last claims gives their numbers once more, and a
-- report under an earlier claim must not count for a later one.
local function claim(browser)
  browser.claim = string.format("%s-%d", microseconds(), nextNumber("sequence"))
end
