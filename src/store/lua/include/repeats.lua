-- repeats: the same idempotency key again: the same lease, or the same place.
--- @include changes
--- @include write-record
--- @include messages

-- Answers a grant; for a repeat its lease is remembered, not the long record of the browser.
local function grant(text, lease)
  return finish("granted", text, lease)
end

-- The first answer to this request. The browser of a lease is shown as it is now.
local function answeredBefore()
  local first = earlierAnswer()
  if not first or first[1] ~= "granted" then return first end
  local held = redis.call("HGET", K.leases, first[2])
  if not held then return plain("over") end
  first[2] = redis.call("HGET", K.browsers, held)
  return first
end

-- Notes what the key was given; before the waiter is stored.
local function remember(waiter)
  if A.body == "" then return end
  waiter.keyUntil = now + tonumber(A.keepMs)
  local given = cjson.encode({ body = A.body, lease = waiter.lease, waiter = waiter.id })
  redis.call("SET", K.idempotency, given, "PX", A.keepMs)
end

-- The browser of the lease that the key was given, for the new connection.
local function reattachLease(earlier, waiter)
  local id = redis.call("HGET", K.leases, earlier.lease)
  if not id then return nil end
  local browser = read(id)
  local lease = browser.lease
  lease.control, lease.connection, lease.lost = waiter.control, waiter.connection, nil
  write(browser)
  if redis.call("ZSCORE", K.provisional, lease.id) then
    redis.call("ZADD", K.provisional, now + tonumber(A.provisionalMs), lease.id)
  end
  return browser
end

-- Gives a place to the new connection; the old one is told.
local function takeOver(place, waiter)
  publish("remuda:control:" .. place.control, {
    kind = "superseded", waiter = place.id, connection = place.connection,
  })
  place.control, place.connection, place.detachedAt = waiter.control, waiter.connection, nil
  redis.call("HSET", K.waiterRecords, place.id, cjson.encode(place))
end

-- The answer to a key that was seen before; nil where its place was given up unserved. `onPlace` answers for
-- a place that the key was given, and takes it over.
local function answerRepeat(waiter, onPlace)
  local text = A.body ~= "" and redis.call("GET", K.idempotency)
  if not text then return nil end
  local earlier = cjson.decode(text)
  if earlier.body ~= A.body then return plain("mismatch") end
  local browser = reattachLease(earlier, waiter)
  if browser then return grant(cjson.encode(browser), earlier.lease) end
  local place = redis.call("HGET", K.waiterRecords, earlier.waiter)
  if place then return onPlace(cjson.decode(place)) end
  return redis.call("ZSCORE", K.endedLeases, earlier.lease) and plain("over") or nil
end
