package redlatch;

import org.junit.jupiter.api.Test;
import redlatch.harness.Counter;

import java.util.concurrent.atomic.AtomicInteger;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** RLock, with the methods that every release has. */
class LockTest extends GenerationTest {

    @Test
    void isHeldByOneThreadAndNoOther() {
        var mine = a.redisson.getLock("lock");
        var theirs = b.redisson.getLock("lock");
        mine.lock();
        assertTrue(mine.isLocked());
        assertTrue(mine.isHeldByCurrentThread());
        assertTrue(theirs.isLocked());
        assertFalse(theirs.isHeldByCurrentThread());
        assertFalse(theirs.tryLock());
        assertFalse(elsewhere(() -> mine.tryLock()));
        mine.unlock();
        assertFalse(mine.isLocked());
        assertTrue(theirs.tryLock());
        theirs.unlock();
    }

    @Test
    void isReentrant() {
        var mine = a.redisson.getLock("lock");
        var theirs = b.redisson.getLock("lock");
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
    void cannotBeUnlockedByAStranger() {
        var mine = a.redisson.getLock("lock");
        var theirs = b.redisson.getLock("lock");
        mine.lock();
        assertThrows(IllegalMonitorStateException.class, theirs::unlock);
        assertTrue(mine.isHeldByCurrentThread());
        mine.unlock();
    }

    @Test
    void givesUpAfterTheWait() throws Exception {
        var mine = a.redisson.getLock("lock");
        var theirs = b.redisson.getLock("lock");
        mine.lock();
        assertFalse(theirs.tryLock(200, MILLISECONDS));
        eventually("no subscription is left", () -> channels().isEmpty());
        mine.unlock();
    }

    @Test
    void expiredOwnerCannotUnlockTheNextOne() throws Exception {
        var mine = a.redisson.getLock("lock");
        var theirs = b.redisson.getLock("lock");
        mine.lock(300, MILLISECONDS);
        long ttlMs = ttlMs("lock");
        assertTrue(0 < ttlMs && ttlMs <= 300, ttlMs + " ms");
        assertTrue(theirs.tryLock(10, 30, SECONDS));
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        assertTrue(theirs.isHeldByCurrentThread());
        theirs.unlock();
    }

    @Test
    void unlockWakesTheWaiter() throws Exception {
        var mine = a.redisson.getLock("lock");
        var theirs = b.redisson.getLock("lock");
        mine.lock(30, SECONDS);
        var waiter = spawn(() -> {
            boolean locked = theirs.tryLock(20, 30, SECONDS);
            theirs.unlock();
            return locked;
        });
        eventually("it waits", waiter::isParked);
        mine.unlock();
        assertTrue(waiter.get(10, SECONDS));  // the lease is three times as long
        assertFalse(mine.isLocked());
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void forceUnlockFreesAnotherClientsLock() {
        var mine = a.redisson.getLock("lock");
        var theirs = b.redisson.getLock("lock");
        mine.lock();
        theirs.forceUnlock();
        assertFalse(mine.isLocked());
        assertTrue(theirs.tryLock());
        theirs.unlock();
    }

    @Test
    void guardsACounter() {
        Counter counter = new Counter();
        AtomicInteger turn = new AtomicInteger();
        together(8, () -> {
            var lock = (turn.getAndIncrement() % 2 == 0 ? a : b).redisson.getLock("lock");
            for (int i = 0; i < 20; i++) {
                lock.lock();
                counter.increment();
                lock.unlock();
            }
        });
        assertEquals(160, counter.value());
    }
}
