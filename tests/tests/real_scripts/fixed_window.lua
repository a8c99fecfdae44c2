local current = redis.call('INCR', KEYS[1])
if current == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
if current > tonumber(ARGV[2]) then
  return redis.error_reply('LIMITED retry in ' .. redis.call('TTL', KEYS[1]) .. ' seconds')
end
return redis.status_reply('OK ' .. current)
