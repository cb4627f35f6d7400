-- messages: hints to controls and nodes; each is repeated by a tick when lost.

local function publish(channel, message)
  redis.call("PUBLISH", channel, cjson.encode(message))
end
