package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Counter;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

class ReadWriteLockTest extends RedissonTest {

    @Test
    void readersShareAndAWriterIsAlone() {
        RReadWriteLock mine = redisson.getReadWriteLock("lock");
        RReadWriteLock theirs = other.getReadWriteLock("lock");
        mine.readLock().lock();
        theirs.readLock().lock();
        assertEquals("read", ask("HGET", "lock", "mode"));
        assertFalse(mine.writeLock().tryLock());
        assertFalse(theirs.writeLock().tryLock());
        mine.readLock().unlock();
        assertTrue(theirs.readLock().isHeldByCurrentThread());
        theirs.readLock().unlock();

        mine.writeLock().lock();
        assertEquals("write", ask("HGET", "lock", "mode"));
        assertFalse(theirs.readLock().tryLock());
        assertFalse(theirs.writeLock().tryLock());
        assertFalse(elsewhere(() -> mine.readLock().tryLock()));
        mine.writeLock().unlock();
        assertFalse(mine.writeLock().isLocked());
        assertFalse(mine.readLock().isLocked());
    }

    @Test
    void writerStepsDownToReader() throws Exception {
        RReadWriteLock mine = redisson.getReadWriteLock("lock");
        RReadWriteLock theirs = other.getReadWriteLock("lock");
        mine.writeLock().lock();
        mine.readLock().lock();
        mine.writeLock().unlock();
        assertTrue(mine.readLock().isHeldByCurrentThread());
        assertEquals("read", ask("HGET", "lock", "mode"));
        assertTrue(theirs.readLock().tryLock());
        assertFalse(theirs.writeLock().tryLock());
        theirs.readLock().unlock();
        mine.readLock().unlock();
        eventually("nothing is left", () -> ask("DBSIZE").equals(0L));
    }

    @Test
    void readerCannotStepUp() throws Exception {
        RReadWriteLock mine = redisson.getReadWriteLock("lock");
        mine.readLock().lock();
        assertFalse(mine.writeLock().tryLock(100, MILLISECONDS));
        mine.readLock().unlock();
    }

    @Test
    void allWaitingReadersWakeTogether() throws Exception {
        redisson.getReadWriteLock("lock").writeLock().lock();
        int readers = 20;
        CountDownLatch inside = new CountDownLatch(readers);
        List<Task<Boolean>> waiting = new ArrayList<>();
        for (int i = 0; i < readers; i++) {
            RLock theirs = (i % 2 == 0 ? redisson : other).getReadWriteLock("lock").readLock();
            waiting.add(spawn(() -> {
                theirs.lock();
                inside.countDown();
                boolean together = inside.await(20, SECONDS);  // no reader leaves before all have entered
                theirs.unlock();
                return together;
            }));
        }
        eventually("they wait", () -> waiting.stream().allMatch(Task::isParked));
        assertEquals(readers, inside.getCount());
        redisson.getReadWriteLock("lock").writeLock().unlock();
        for (Task<Boolean> reader : waiting) {
            assertTrue(reader.get(25, SECONDS));
        }
        eventually("no subscription is left", () -> channels().isEmpty());
        eventually("nothing is left", () -> ask("DBSIZE").equals(0L));
    }

    @Test
    void bothAreReentrant() throws Exception {
        RReadWriteLock mine = redisson.getReadWriteLock("lock");
        mine.readLock().lock();
        mine.readLock().lock();
        assertEquals(2, mine.readLock().getHoldCount());
        mine.readLock().unlock();
        assertTrue(mine.readLock().isHeldByCurrentThread());
        mine.readLock().unlock();
        mine.writeLock().lock();
        mine.writeLock().lock();
        assertEquals(2, mine.writeLock().getHoldCount());
        mine.writeLock().unlock();
        assertTrue(mine.writeLock().isHeldByCurrentThread());
        mine.writeLock().unlock();
        eventually("nothing is left", () -> ask("DBSIZE").equals(0L));
    }

    @Test
    void leaseOfAWriterGrowsWithReentrance() {
        RLock mine = redisson.getReadWriteLock("lock").writeLock();
        mine.lock(10, SECONDS);
        mine.lock(10, SECONDS);
        long ttlMs = mine.remainTimeToLive();
        assertTrue(18_000 < ttlMs && ttlMs <= 20_000, ttlMs + " ms");
        mine.unlock();
        mine.unlock();
    }

    @Test
    void longestReaderKeepsTheLock() throws Exception {
        RLock mine = redisson.getReadWriteLock("lock").readLock();
        RLock theirs = other.getReadWriteLock("lock").readLock();
        mine.lock(20, SECONDS);
        theirs.lock(5, SECONDS);
        assertTrue(ttlMs("lock") > 18_000, "a second reader must not shorten the lease");
        mine.unlock();
        long ttlMs = ttlMs("lock");
        assertTrue(3_000 < ttlMs && ttlMs <= 5_000, "what is left is the lease of the second: " + ttlMs + " ms");
        theirs.unlock();
        eventually("nothing is left", () -> ask("DBSIZE").equals(0L));
    }

    @Test
    void strangersAndExpiredOwnersCannotUnlock() throws Exception {
        RReadWriteLock mine = redisson.getReadWriteLock("lock");
        RReadWriteLock theirs = other.getReadWriteLock("lock");
        mine.readLock().lock();
        assertThrows(IllegalMonitorStateException.class, theirs.readLock()::unlock);
        assertThrows(IllegalMonitorStateException.class, mine.writeLock()::unlock);
        mine.readLock().unlock();
        mine.writeLock().lock(100, MILLISECONDS);
        eventually("the lease is over", () -> !theirs.writeLock().isLocked());
        assertThrows(IllegalMonitorStateException.class, mine.writeLock()::unlock);
        mine.readLock().lock(100, MILLISECONDS);
        eventually("the lease is over", () -> !theirs.readLock().isLocked());
        assertThrows(IllegalMonitorStateException.class, mine.readLock()::unlock);
    }

    @Test
    void writersNeverMeet() {
        // A message wakes one waiter of a client, and that waiter may have to wait again. The short lease limits how long
        // the others are delayed by that.
        RedissonClient[] clients = {client(config().setLockWatchdogTimeout(3_000)),
            client(config().setLockWatchdogTimeout(3_000))};
        AtomicInteger readers = new AtomicInteger();
        AtomicInteger writers = new AtomicInteger();
        AtomicInteger turn = new AtomicInteger();
        Counter written = new Counter();
        together(12, () -> {
            int number = turn.getAndIncrement();
            RReadWriteLock lock = clients[number % 2].getReadWriteLock("lock");
            for (int i = 0; i < 10; i++) {
                if (number % 3 == 0) {
                    lock.writeLock().lock();
                    assertEquals(1, writers.incrementAndGet());
                    written.increment();
                    assertEquals(0, readers.get());
                    writers.decrementAndGet();
                    lock.writeLock().unlock();
                } else {
                    lock.readLock().lock();
                    readers.incrementAndGet();
                    LockSupport.parkNanos(1_000);
                    assertEquals(0, writers.get());
                    readers.decrementAndGet();
                    lock.readLock().unlock();
                }
            }
        });
        assertEquals(40, written.value());
    }

    @Test
    void forceUnlockOfAReaderAndAWriter() {
        redisson.getReadWriteLock("lock").readLock().lock();
        assertTrue(other.getReadWriteLock("lock").readLock().forceUnlock());
        redisson.getReadWriteLock("lock").writeLock().lock();
        assertTrue(other.getReadWriteLock("lock").writeLock().forceUnlock());
        assertFalse(other.getReadWriteLock("lock").writeLock().isLocked());
    }
}
