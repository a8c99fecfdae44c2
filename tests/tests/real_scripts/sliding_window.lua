-- At most ARGV[3] hits in the last ARGV[2] ms; ARGV[1] is now, ARGV[4] names the hit.
local key, now, window, limit = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. (now - window))
local used = redis.call('ZCARD', key)
if used < limit then
  redis.call('ZADD', key, now, ARGV[4])
  redis.call('PEXPIRE', key, window)
  return {1, limit - used - 1}
end
local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
return {0, first[2] + window - now}
