-- refunds: what a launch has cost comes back when it comes to nothing.

local function addCredit(count)
  redis.call("HINCRBY", K.pool, "credit", count)
end

local function refund(browser)
  if browser.paid == "credit" then addCredit(1) end
  if browser.paid == "token" then redis.call("HINCRBYFLOAT", K.pool, "tokens", 1) end
  browser.paid = nil
end
