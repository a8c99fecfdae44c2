-- Moves the jobs that are due from a sorted set to a list, in chunks.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, tonumber(ARGV[2]))
if #due > 0 then
  redis.call('ZREM', KEYS[1], unpack(due))
  for i = 1, #due, 100 do
    redis.call('RPUSH', KEYS[2], unpack(due, i, math.min(i + 99, #due)))
  end
end
return due
