-- settle-size: put right a pool's reserved size that its record does not bear out, unless it was reserved
-- anew meanwhile.
-- KEYS  sizes
-- ARGV  pool before after
-- REPLY settled, kept
-- `before` is the text that was read; `after` is empty where there is no such pool.
--- @include base

if redis.call("HGET", K.sizes, A.pool) ~= A.before then return plain("kept") end
if A.after == "" then
  redis.call("HDEL", K.sizes, A.pool)
else
  redis.call("HSET", K.sizes, A.pool, A.after)
end
return plain("settled")
