-- Takes a lock in the order of asking: a list holds the queue, a sorted set until when each may stand in it (ms).
local lock, queue, due = KEYS[1], KEYS[2], KEYS[3]
local lease_ms, holder, wait_ms, now_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local first = redis.call('lindex', queue, 0)
while first and tonumber(redis.call('zscore', due, first)) <= now_ms do
    redis.call('zrem', due, first)
    redis.call('lpop', queue)
    first = redis.call('lindex', queue, 0)
end
if redis.call('exists', lock) == 0 and (not first or first == holder) then
    redis.call('lpop', queue)
    redis.call('zrem', due, holder)
    for _, waiting in ipairs(redis.call('zrange', due, 0, -1)) do
        redis.call('zincrby', due, -wait_ms, waiting)
    end
    redis.call('hset', lock, holder, 1)
    redis.call('pexpire', lock, lease_ms)
    return nil
end
if redis.call('hexists', lock, holder) == 1 then
    redis.call('hincrby', lock, holder, 1)
    redis.call('pexpire', lock, lease_ms)
    return nil
end
local until_ms = redis.call('zscore', due, holder)
if until_ms then
    return tonumber(until_ms) - wait_ms - now_ms
end
local last = redis.call('lindex', queue, -1)
local ttl_ms
if last then
    ttl_ms = tonumber(redis.call('zscore', due, last)) - now_ms
else
    ttl_ms = redis.call('pttl', lock)
end
if redis.call('zadd', due, ttl_ms + wait_ms + now_ms, holder) == 1 then
    redis.call('rpush', queue, holder)
end
return ttl_ms
