local tokens_key, stamp_key = KEYS[1], KEYS[2]
local rate, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, wanted = tonumber(ARGV[3]), tonumber(ARGV[4])
local ttl = math.floor(capacity / rate * 2)
local last_tokens = tonumber(redis.call('get', tokens_key))
if last_tokens == nil then last_tokens = capacity end
local last_stamp = tonumber(redis.call('get', stamp_key))
if last_stamp == nil then last_stamp = 0 end
local delta = math.max(0, now - last_stamp)
local filled = math.min(capacity, last_tokens + delta * rate)
local allowed = filled >= wanted
local left = filled
if allowed then left = filled - wanted end
redis.call('setex', tokens_key, ttl, left)
redis.call('setex', stamp_key, ttl, now)
return { allowed, left }
