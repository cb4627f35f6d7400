-- read-browsers: read every record of a partition.
-- KEYS  browsers
-- ARGV
-- REPLY browsers (JSON list of texts)
--- @include base

return plain("browsers", cjson.encode(redis.call("HVALS", K.browsers)))
