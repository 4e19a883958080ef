-- Gives a reading hold back; the last one deletes the lock and tells those who wait.
local lock, channel, holds, holder = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
if redis.call('hexists', lock, holder) == 0 then
    return nil
end
local count = redis.call('hincrby', lock, holder, -1)
if count == 0 then
    redis.call('hdel', lock, holder)
end
redis.call('del', holds .. ':' .. (count + 1))
if redis.call('hlen', lock) > 1 then
    for _, field in ipairs(redis.call('hkeys', lock)) do
        if tonumber(redis.call('hget', lock, field)) then
            return 0
        end
    end
end
redis.call('del', lock)
redis.call('publish', channel, 'free')
return 1
