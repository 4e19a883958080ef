-- Gives a fair lock back and tells the first who waits.
local lock, queue, channel, holder = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
if redis.call('hexists', lock, holder) == 0 then
    return nil
end
if redis.call('hincrby', lock, holder, -1) > 0 then
    return 0
end
redis.call('del', lock)
local first = redis.call('lindex', queue, 0)
if first then
    redis.call('publish', channel .. first, 'free')
end
return 1
