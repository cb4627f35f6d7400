-- read-some-browsers: some browsers' records.
-- KEYS  browsers
-- ARGV  ids
-- REPLY records (each on a line, those that are gone left out)
-- `ids` is a JSON list, at most 1000.
--- @include base

local found = {}
for _, text in ipairs(redis.call("HMGET", K.browsers, unpack(cjson.decode(A.ids)))) do
  if text then table.insert(found, text) end
end
-- JSON holds no line breaks.
return plain("records", table.concat(found, "\n"))
