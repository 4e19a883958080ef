package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RIdGenerator;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RSemaphore;
import org.redisson.api.RateType;
import org.redisson.client.RedisException;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Semaphores, latches, rate limiters, id generators. */
class SynchronizersTest extends RedissonTest {

    @Test
    void semaphoreCountsPermits() throws Exception {
        RSemaphore semaphore = redisson.getSemaphore("semaphore");
        assertFalse(semaphore.tryAcquire());
        assertTrue(semaphore.trySetPermits(3));
        assertFalse(semaphore.trySetPermits(5));
        assertTrue(semaphore.tryAcquire(2));
        assertFalse(semaphore.tryAcquire(2));
        assertFalse(semaphore.tryAcquire(2, Duration.ofMillis(100)));
        semaphore.release(4);
        assertEquals(5, semaphore.availablePermits());
        semaphore.addPermits(-1);
        assertEquals(4, semaphore.drainPermits());
        assertEquals(0, semaphore.drainPermits());
        assertFalse(redisson.getSemaphore("absent").releaseIfExists(1));
        assertTrue(redisson.getSemaphore("short").trySetPermits(1, Duration.ofSeconds(10)));
        assertTrue(ttlMs("short") > 8_000);
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void semaphoreLetsSoManyIn() throws Exception {
        redisson.getSemaphore("semaphore").trySetPermits(3);
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        together(30, () -> {
            RSemaphore semaphore = other.getSemaphore("semaphore");
            semaphore.acquire();
            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
            LockSupport.parkNanos(1_000);
            inside.decrementAndGet();
            semaphore.release();
        });
        assertTrue(most.get() <= 3, most + " inside");
        assertEquals(3, redisson.getSemaphore("semaphore").availablePermits());
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void permitsExpire() throws Exception {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore("semaphore");
        semaphore.trySetPermits(2);
        String forever = semaphore.acquire();
        String brief = semaphore.acquire(200, MILLISECONDS);
        assertNull(semaphore.tryAcquire());
        assertEquals(-1, semaphore.getLeaseTime(forever));
        long leaseMs = semaphore.getLeaseTime(brief);
        assertTrue(0 < leaseMs && leaseMs <= 200, leaseMs + " ms");
        String next = other.getPermitExpirableSemaphore("semaphore").tryAcquire(10, 20, SECONDS);
        assertNotNull(next);
        assertFalse(semaphore.tryRelease(brief));
        RedisException late = assertThrows(RedisException.class, () -> semaphore.release(brief));
        assertInstanceOf(IllegalArgumentException.class, late.getCause());
        assertTrue(semaphore.updateLeaseTime(next, 30, SECONDS));
        assertTrue(semaphore.getLeaseTime(next) > 25_000);
        assertEquals(2, semaphore.acquiredPermits());
        semaphore.release(List.of(forever, next));
        assertEquals(2, semaphore.availablePermits());
        assertEquals(2, semaphore.getPermits());
        assertEquals(2, semaphore.tryAcquire(2).size());
    }

    @Test
    void latchOpensForAllWhenItReachesZero() throws Exception {
        RCountDownLatch latch = redisson.getCountDownLatch("latch");
        assertTrue(latch.trySetCount(2));
        assertFalse(latch.trySetCount(3));
        List<CompletableFuture<Boolean>> waiters = List.of(
            spawn(() -> latch.await(20, SECONDS)),
            spawn(() -> other.getCountDownLatch("latch").await(20, SECONDS)));
        eventually("they listen", () -> !channels().isEmpty());
        latch.countDown();
        assertEquals(1, latch.getCount());
        assertFalse(latch.await(100, MILLISECONDS));
        other.getCountDownLatch("latch").countDown();
        for (CompletableFuture<Boolean> waiter : waiters) {
            assertTrue(waiter.get(20, SECONDS));
        }
        assertEquals(0, latch.getCount());
        latch.await();
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void rateLimiterCountsWithinTheInterval() {
        RRateLimiter limiter = redisson.getRateLimiter("limiter");
        RedisException notReady = assertThrows(RedisException.class, limiter::tryAcquire);
        assertTrue(notReady.getMessage().contains("RateLimiter is not initialized"), notReady.getMessage());
        assertTrue(limiter.trySetRate(RateType.OVERALL, 5, Duration.ofMillis(600)));
        assertFalse(limiter.trySetRate(RateType.OVERALL, 9, Duration.ofMillis(600)));
        assertTrue(limiter.tryAcquire(3));
        assertTrue(other.getRateLimiter("limiter").tryAcquire(2));
        assertFalse(limiter.tryAcquire());
        assertEquals(0, limiter.availablePermits());
        assertTrue(limiter.tryAcquire(5, Duration.ofSeconds(10)));  // once the interval is over
        RedisException tooMany = assertThrows(RedisException.class, () -> limiter.tryAcquire(6));
        assertTrue(tooMany.getMessage().contains("cannot exceed defined rate"), tooMany.getMessage());
        assertEquals(5, limiter.getConfig().getRate());
        limiter.setRate(RateType.PER_CLIENT, 1, Duration.ofSeconds(30));
        assertTrue(limiter.tryAcquire());
        assertFalse(limiter.tryAcquire());
        assertTrue(other.getRateLimiter("limiter").tryAcquire());
    }

    @Test
    void idsAreUnique() {
        RIdGenerator generator = redisson.getIdGenerator("ids");
        assertTrue(generator.tryInit(100, 7));
        assertFalse(generator.tryInit(1, 1));
        assertEquals(100, generator.nextId());
        Set<Long> ids = ConcurrentHashMap.newKeySet();
        together(20, () -> {
            for (int i = 0; i < 20; i++) {
                ids.add((i % 2 == 0 ? redisson : other).getIdGenerator("ids").nextId());
            }
        });
        assertEquals(400, ids.size());
        assertFalse(new HashSet<>(ids).contains(100L));
        assertEquals(1, redisson.getIdGenerator("fresh").nextId());
    }
}
