-- claims: each names one attempt; a job whose claim is not the record's does nothing.
--- @include pool

local function claim(browser)
  browser.claim = tostring(nextNumber("sequence"))
end
