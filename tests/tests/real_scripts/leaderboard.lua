local board, member, score = KEYS[1], ARGV[1], tonumber(ARGV[2])
local before = redis.call('zscore', board, member)
if not before or tonumber(before) < score then
  redis.call('zadd', board, score, member)
end
local rank = redis.call('zrevrank', board, member)
local from = math.max(rank - 1, 0)
local around = redis.call('zrevrange', board, from, rank + 1, 'withscores')
local lines = {}
for i = 1, #around, 2 do
  lines[#lines + 1] = string.format('%d. %s %d', from + (i + 1) / 2, around[i], around[i + 1])
end
return { rank + 1, before, lines, redis.call('zcard', board) }
