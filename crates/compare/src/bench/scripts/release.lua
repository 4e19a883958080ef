-- Gives a lock back once; the last time deletes it and tells those who wait.
local lock, channel, lease_ms, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if redis.call('hexists', lock, holder) == 0 then
    return nil
end
if redis.call('hincrby', lock, holder, -1) > 0 then
    redis.call('pexpire', lock, lease_ms)
    return 0
end
redis.call('del', lock)
redis.call('publish', channel, 'free')
return 1
