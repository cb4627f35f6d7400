-- server: which Redis answers, and whether it has all that was written before.

-- Asking the server costs a fifth of a grant, so not each grant asks. No replica takes over within so short a
-- time.
local serverCheckMs = 10

-- Gives the present replication id and the one before it. A process has a new id when it starts and when it
-- is made a primary; with the first replica, or an hour after the last, it has one with nothing before it.
local function replicationIds()
  local text = redis.call("INFO", "replication")
  return text:match("master_replid:(%x+)"), text:match("master_replid2:(%x+)")
end

local function serverRun()
  return redis.call("INFO", "server"):match("run_id:(%x+)")
end

-- Why another epoch begins, where one does, and by which ids it is known: `first` where none is noted,
-- `restarted`, or `failover`: what was acknowledged last may be lost.
local function epochOf(knownId, knownRun)
  local id, before = replicationIds()
  if knownId == id then return nil, id, knownRun end
  local run = serverRun()
  if not knownId then return "first", id, run end
  if before:find("[^0]") then return "failover", id, run end
  return run ~= knownRun and "restarted" or nil, id, run
end

-- Notes by which server a pool, or the first session on demand, was made.
local function noteServer()
  if redis.call("HEXISTS", K.pool, "replicationId") == 1 then return end
  local _, id, run = epochOf()
  redis.call("HSET", K.pool, "replicationId", id, "run", run)
end
