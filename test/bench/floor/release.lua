-- The least a release can be: the lease is checked and ended, and the browser is idle again.
local idle, leased, browsers, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, lease = ARGV[1], ARGV[2]

local browser = cjson.decode(redis.call("HGET", browsers, id))
if browser.lease_id ~= lease then return 0 end
browser.lease_id = nil
redis.call("ZREM", leased, id)
redis.call("ZADD", idle, redis.call("TIME")[1], id)
redis.call("HSET", browsers, id, cjson.encode(browser))
redis.call("HDEL", leases, lease)
return 1
