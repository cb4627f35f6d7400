-- keep-recording: keep what a browser had recorded when it ended by a fault.
-- KEYS  flightRecordingOrder flightRecordings
-- ARGV  browser recording most keepMs
-- REPLY kept
--- @include base
--- @include recordings

redis.call("ZADD", K.flightRecordingOrder, now, A.browser)
redis.call("HSET", K.flightRecordings, A.browser, A.recording)
sweepRecordings(tonumber(A.keepMs), tonumber(A.most))
return plain("kept")
