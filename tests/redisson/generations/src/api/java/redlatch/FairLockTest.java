package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.client.codec.StringCodec;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

class FairLockTest extends GenerationTest {

    @Test
    void servesInTheOrderOfArrival() throws Exception {
        var lock = a.redisson.getFairLock("lock");
        List<Integer> served = Collections.synchronizedList(new ArrayList<>());
        List<CompletableFuture<Void>> waiters = new ArrayList<>();
        lock.lock(30, SECONDS);
        for (int i = 0; i < 6; i++) {
            int number = i;
            var theirs = (i % 2 == 0 ? a : b).redisson.getFairLock("lock");
            waiters.add(spawn(() -> {
                theirs.lock(30, SECONDS);
                served.add(number);
                theirs.unlock();
            }));
            eventually("the waiter stands in the queue", () -> queue().size() == number + 1);
        }
        lock.unlock();
        for (CompletableFuture<Void> waiter : waiters) {
            waiter.get(20, SECONDS);
        }
        assertEquals(List.of(0, 1, 2, 3, 4, 5), served);
        assertEquals(List.of(), queue());
        assertFalse(lock.isLocked());
    }

    @Test
    void whoGivesUpLeavesTheQueue() throws Exception {
        var mine = a.redisson.getFairLock("lock");
        var theirs = b.redisson.getFairLock("lock");
        mine.lock(30, SECONDS);
        assertFalse(theirs.tryLock(300, 30_000, MILLISECONDS));
        eventually("the queue is empty", () -> queue().isEmpty());
        mine.unlock();
        assertTrue(theirs.tryLock());
        theirs.unlock();
    }

    @Test
    void isReentrantAndKnowsStrangers() {
        var mine = a.redisson.getFairLock("lock");
        var theirs = b.redisson.getFairLock("lock");
        mine.lock();
        mine.lock();
        assertEquals(2, mine.getHoldCount());
        assertThrows(IllegalMonitorStateException.class, theirs::unlock);
        mine.unlock();
        assertFalse(theirs.tryLock());
        mine.unlock();
        assertTrue(theirs.tryLock());
        theirs.unlock();
    }

    private List<Object> queue() {
        return a.redisson.getList("redisson_lock_queue:{lock}", StringCodec.INSTANCE).readAll();
    }
}
