package redlatch;

import org.junit.jupiter.api.Test;
import redlatch.harness.Concurrently.Task;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

class ReadWriteLockTest extends GenerationTest {

    @Test
    void readersShareAndTheWriterIsAlone() {
        var mine = a.redisson.getReadWriteLock("lock");
        var theirs = b.redisson.getReadWriteLock("lock");
        mine.readLock().lock();
        assertTrue(theirs.readLock().tryLock());
        assertFalse(theirs.writeLock().tryLock());
        theirs.readLock().unlock();
        mine.readLock().unlock();
        theirs.writeLock().lock();
        assertFalse(mine.readLock().tryLock());
        assertFalse(mine.writeLock().tryLock());
        theirs.writeLock().unlock();
        assertTrue(mine.writeLock().tryLock());
        mine.writeLock().unlock();
    }

    @Test
    void writerMayReadAndThenStepDown() {
        var mine = a.redisson.getReadWriteLock("lock");
        var theirs = b.redisson.getReadWriteLock("lock");
        mine.writeLock().lock();
        mine.readLock().lock();
        assertFalse(theirs.readLock().tryLock());
        mine.writeLock().unlock();
        assertTrue(theirs.readLock().tryLock());
        assertFalse(theirs.writeLock().tryLock());
        theirs.readLock().unlock();
        mine.readLock().unlock();
        assertTrue(theirs.writeLock().tryLock());
        theirs.writeLock().unlock();
    }

    @Test
    void readLockIsReentrantAndKnowsStrangers() {
        var mine = a.redisson.getReadWriteLock("lock").readLock();
        var theirs = b.redisson.getReadWriteLock("lock").readLock();
        mine.lock();
        mine.lock();
        assertThrows(IllegalMonitorStateException.class, theirs::unlock);
        mine.unlock();
        assertTrue(mine.isHeldByCurrentThread());
        mine.unlock();
        assertFalse(mine.isHeldByCurrentThread());
    }

    @Test
    void allWaitingReadersEnterAfterTheWriter() throws Exception {
        var mine = a.redisson.getReadWriteLock("lock");
        mine.writeLock().lock(30, SECONDS);
        CountDownLatch inside = new CountDownLatch(4);
        List<Task<Boolean>> readers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            var theirs = (i % 2 == 0 ? a : b).redisson.getReadWriteLock("lock").readLock();
            readers.add(spawn(() -> {
                theirs.lock(30, SECONDS);
                inside.countDown();
                boolean together = inside.await(10, SECONDS);
                theirs.unlock();
                return together;
            }));
        }
        eventually("they wait", () -> readers.stream().allMatch(Task::isParked));
        mine.writeLock().unlock();
        for (Task<Boolean> reader : readers) {
            assertTrue(reader.get(15, SECONDS));
        }
    }
}
