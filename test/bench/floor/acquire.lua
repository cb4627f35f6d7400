-- The least an acquire can be: the browser that is idle longest gets a lease.
local idle, leased, browsers, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease = ARGV[1]

local id = redis.call("ZRANGE", idle, 0, 0)[1]
if not id then return false end
local browser = cjson.decode(redis.call("HGET", browsers, id))
browser.lease_id = lease
local text = cjson.encode(browser)
redis.call("ZREM", idle, id)
redis.call("ZADD", leased, redis.call("TIME")[1], id)
redis.call("HSET", browsers, id, text)
redis.call("HSET", leases, lease, id)
return text
