package redlatch;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;
import org.redisson.api.RLock;
import redlatch.harness.Concurrently.Task;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** All methods of RLock, over every kind of connection. */
@ParameterizedClass
@MethodSource("redlatch.Settings#all")
class LockTest extends RedissonTest {

    @Parameter
    private Settings combination;
    private RLock mine;
    private RLock theirs;

    @BeforeParameterizedClassInvocation
    void startCombination() {
        settings = combination;
        super.start();
        mine = redisson.getLock("lock");
        theirs = other.getLock("lock");
    }

    @Override
    void start() {
        // startCombination has started the clients
    }

    @Override
    @AfterParameterizedClassInvocation
    void stop() {
        super.stop();
    }

    @Test
    void lockIsAHashWithALeaseAndLeavesNothing() throws Exception {
        mine.lock();
        List<String> hash = ask("HGETALL", "lock");
        assertEquals(2, hash.size());
        assertTrue(hash.get(0).matches("[0-9a-f-]{36}:" + Thread.currentThread().getId()), hash.get(0));
        assertEquals("1", hash.get(1));
        long ttlMs = ttlMs("lock");
        assertTrue(20_000 < ttlMs && ttlMs <= 30_000, ttlMs + " ms");
        mine.unlock();
        eventually("the latch of the unlock is gone", () -> ask("DBSIZE").equals(0L));
    }

    @Test
    void tryLockTellsWhetherItIsFree() {
        assertFalse(mine.isLocked());
        assertTrue(mine.tryLock());
        assertTrue(mine.isLocked());
        assertTrue(theirs.isLocked());
        assertTrue(mine.isHeldByCurrentThread());
        assertFalse(theirs.isHeldByCurrentThread());
        assertFalse(theirs.tryLock());
        assertFalse(elsewhere(() -> mine.tryLock()));
        mine.unlock();
        assertTrue(theirs.tryLock());
        theirs.unlock();
    }

    @Test
    void tryLockWaitsAndGivesUp() throws Exception {
        mine.lock();
        long start = System.nanoTime();
        assertFalse(theirs.tryLock(150, MILLISECONDS));
        long waitedMs = NANOSECONDS.toMillis(System.nanoTime() - start);
        assertTrue(waitedMs >= 140, waitedMs + " ms");  // Redisson counts in whole milliseconds of another clock
        mine.unlock();
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void tryLockWaitsForTheUnlock() throws Exception {
        mine.lock();
        Task<Boolean> waiter = spawn(() -> {
            boolean locked = theirs.tryLock(20, SECONDS);
            theirs.unlock();
            return locked;
        });
        eventually("it waits", waiter::isParked);
        mine.unlock();
        assertTrue(waiter.get(10, SECONDS));
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void tryLockWaitsForTheLeaseToEnd() throws Exception {
        mine.lock(200, MILLISECONDS);
        assertTrue(theirs.tryLock(10_000, 5_000, MILLISECONDS));
        long ttlMs = ttlMs("lock");
        assertTrue(3_000 < ttlMs && ttlMs <= 5_000, ttlMs + " ms");
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        theirs.unlock();
    }

    @Test
    void lockInterruptiblyCanBeInterrupted() throws Exception {
        mine.lock();
        Task<Void> waiter = spawn(() -> {
            assertThrows(InterruptedException.class, theirs::lockInterruptibly);
        });
        eventually("it waits", waiter::isParked);
        waiter.interrupt();
        waiter.get(10, SECONDS);
        mine.unlock();
        theirs.lockInterruptibly(10, SECONDS);
        theirs.unlock();
    }

    @Test
    void isReentrant() {
        for (int depth = 1; depth <= 3; depth++) {
            mine.lock();
            assertEquals(depth, mine.getHoldCount());
        }
        for (int depth = 2; depth >= 0; depth--) {
            assertFalse(theirs.tryLock());
            mine.unlock();
            assertEquals(depth, mine.getHoldCount());
        }
        assertTrue(theirs.tryLock());
        theirs.unlock();
    }

    @Test
    void reentranceSetsTheLease() {
        mine.lock(5, SECONDS);
        mine.lock(20, SECONDS);
        long ttlMs = mine.remainTimeToLive();
        assertTrue(15_000 < ttlMs && ttlMs <= 20_000, ttlMs + " ms");
        mine.unlock();
        assertTrue(mine.isHeldByCurrentThread());
        mine.unlock();
    }

    @Test
    void asyncFormsNameTheThread() throws Exception {
        mine.lockAsync(1).get(10, SECONDS);
        assertTrue(mine.isHeldByThreadAsync(1).get(10, SECONDS));
        assertFalse(mine.tryLockAsync(2).get(10, SECONDS));
        CompletableFuture<Boolean> third = theirs.tryLockAsync(20, 30, SECONDS, 3).toCompletableFuture();
        eventually("the third listens", () -> !channels().isEmpty());
        ExecutionException stranger =
            assertThrows(ExecutionException.class, () -> theirs.unlockAsync(2).get(10, SECONDS));
        assertInstanceOf(IllegalMonitorStateException.class, stranger.getCause());
        assertFalse(third.isDone());
        mine.unlockAsync(1).get(10, SECONDS);
        assertTrue(third.get(10, SECONDS));
        assertTrue(theirs.isHeldByThread(3));
        assertTrue(mine.isLockedAsync().get(10, SECONDS));
        assertTrue(mine.remainTimeToLiveAsync().get(10, SECONDS) > 20_000);
        assertTrue(mine.forceUnlockAsync().get(10, SECONDS));
        assertFalse(mine.isLockedAsync().get(10, SECONDS));
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void forceUnlockFreesAnothersLockAndWakesItsWaiters() throws Exception {
        assertFalse(mine.forceUnlock());
        mine.lock();
        Task<Void> waiter = spawn(() -> {
            theirs.lock();
            theirs.unlock();
        });
        eventually("it waits", waiter::isParked);
        assertTrue(theirs.forceUnlock());
        waiter.get(10, SECONDS);
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        assertFalse(mine.isLocked());
    }

    @Test
    void remainTimeToLiveCountsDown() {
        assertEquals(-2, mine.remainTimeToLive());
        mine.lock(10, SECONDS);
        long ttlMs = theirs.remainTimeToLive();
        assertTrue(8_000 < ttlMs && ttlMs <= 10_000, ttlMs + " ms");
        mine.unlock();
        assertEquals(-2, mine.remainTimeToLive());
    }

    @Test
    void strangerCannotUnlock() {
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        mine.lock();
        assertThrows(IllegalMonitorStateException.class, theirs::unlock);
        elsewhere(() -> {
            assertThrows(IllegalMonitorStateException.class, mine::unlock);
        });
        assertTrue(mine.isHeldByCurrentThread());
        mine.unlock();
    }

    @Test
    void expiredOwnerCannotUnlock() throws Exception {
        mine.lock(100, MILLISECONDS);
        eventually("the lease is over", () -> !theirs.isLocked());
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        assertFalse(mine.isHeldByCurrentThread());
        assertEquals(0, mine.getHoldCount());
    }

    @Test
    void namesMayHoldAnything() {
        for (String name : List.of("", " ", "{tag}lock", "ключ:鍵", "a\r\nb\0c", "x".repeat(10_000))) {
            RLock lock = redisson.getLock(name);
            lock.lock();
            assertFalse(other.getLock(name).tryLock(), name);
            lock.unlock();
            assertTrue(other.getLock(name).tryLock(), name);
            other.getLock(name).unlock();
        }
    }
}
