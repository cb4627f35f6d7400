-- browsers: their records.

local function read(id)
  local text = redis.call("HGET", K.browsers, id)
  return text and cjson.decode(text)
end

local function write(browser)
  local text = cjson.encode(browser)
  redis.call("HSET", K.browsers, browser.id, text)
  return text
end
