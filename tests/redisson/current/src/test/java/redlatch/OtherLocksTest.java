package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.LockOptions;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Counter;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Spin, fenced and non-reentrant locks, and locks on many values at once. */
class OtherLocksTest extends RedissonTest {

    @Test
    void spinLockPolls() throws Exception {
        RLock mine = redisson.getSpinLock("lock");
        RLock theirs = other.getSpinLock("lock", new LockOptions.ConstantBackOff().delay(5));
        mine.lock();
        mine.lock();
        assertFalse(theirs.tryLock());
        assertThrows(IllegalMonitorStateException.class, theirs::unlock);
        CompletableFuture<Void> spinning = spawn(() -> {
            theirs.lock();
            theirs.unlock();
        });
        mine.unlock();
        assertTrue(mine.isLocked());
        mine.unlock();
        spinning.get(20, SECONDS);
        assertEquals(List.of(), channels());
        Counter counter = new Counter();
        together(10, () -> {
            RLock lock = redisson.getSpinLock("lock");
            for (int i = 0; i < 10; i++) {
                lock.lock();
                counter.increment();
                lock.unlock();
            }
        });
        assertEquals(100, counter.value());
    }

    @Test
    void fencingTokenGrowsWithEveryOwner() throws Exception {
        RFencedLock mine = redisson.getFencedLock("lock");
        RFencedLock theirs = other.getFencedLock("lock");
        assertEquals(1, mine.lockAndGetToken());
        assertEquals(1, theirs.getToken());
        assertNull(theirs.tryLockAndGetToken(100, MILLISECONDS));
        mine.unlock();
        theirs.lock(100, MILLISECONDS);  // not lockAndGetToken(100, ...), which forgets the lease in 4.7.0
        assertEquals(2, theirs.getToken());
        assertEquals(3, mine.tryLockAndGetToken(10, 20, SECONDS));
        assertThrows(IllegalMonitorStateException.class, theirs::unlock);
        mine.unlock();
        assertEquals(4, theirs.tryLockAndGetToken(10, 20, SECONDS));
        theirs.unlock();
    }

    @Test
    void nonReentrantLockRefusesItsOwner() {
        for (RLock lock : List.of(redisson.getNonReentrantLock("lock"), redisson.getNonReentrantFairLock("fair"))) {
            lock.lock();
            assertThrows(IllegalMonitorStateException.class, lock::lock);
            assertFalse(elsewhere(() -> lock.tryLock()));
            lock.unlock();
            assertFalse(lock.isLocked());
        }
    }

    @Test
    void valuesOfAGroupAreLockedTogether() throws Exception {
        RLock ab = redisson.getMultiLock("group", List.of("a", "b"));
        RLock bc = other.getMultiLock("group", List.of("b", "c"));
        RLock cd = other.getMultiLock("group", List.of("c", "d"));
        ab.lock();
        assertTrue(ab.isHeldByCurrentThread());
        assertFalse(bc.tryLock());
        assertTrue(cd.tryLock());
        cd.unlock();
        Task<Boolean> waiter = spawn(() -> {
            boolean locked = bc.tryLock(20, 30, SECONDS);
            bc.unlock();
            return locked;
        });
        eventually("it waits", waiter::isParked);
        ab.unlock();
        assertTrue(waiter.get(20, SECONDS));
        assertThrows(IllegalMonitorStateException.class, ab::unlock);
    }

    @Test
    void keysOfAMapHaveLocks() throws Exception {
        var mine = redisson.<String, String>getMap("map");
        var theirs = other.<String, String>getMap("map");
        mine.getLock("a").lock();
        assertFalse(theirs.getLock("a").tryLock());
        assertTrue(theirs.getLock("b").tryLock());
        theirs.getLock("b").unlock();
        mine.getLock("a").unlock();
        mine.getReadWriteLock("a").readLock().lock();
        assertTrue(theirs.getReadWriteLock("a").readLock().tryLock());
        assertFalse(theirs.getReadWriteLock("a").writeLock().tryLock());
        theirs.getReadWriteLock("a").readLock().unlock();
        mine.getReadWriteLock("a").readLock().unlock();
        mine.getFairLock("a").lock();
        assertFalse(theirs.getFairLock("a").tryLock());
        mine.getFairLock("a").unlock();
        mine.getSemaphore("a").trySetPermits(1);
        assertTrue(theirs.getSemaphore("a").tryAcquire());
        assertFalse(mine.getSemaphore("a").tryAcquire(Duration.ofMillis(100)));
        mine.getCountDownLatch("a").trySetCount(1);
        theirs.getCountDownLatch("a").countDown();
        assertTrue(mine.getCountDownLatch("a").await(10, SECONDS));
        eventually("no subscription is left", () -> channels().isEmpty());
    }
}
