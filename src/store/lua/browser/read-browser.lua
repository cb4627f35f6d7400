-- read-browser: read one record.
-- KEYS  browsers
-- ARGV  browser
-- REPLY found (the browser), missing
--- @include base

local text = redis.call("HGET", K.browsers, A.browser)
return text and plain("found", text) or plain("missing")
