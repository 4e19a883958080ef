package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redlatch.harness.Proxy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

class FairLockTest extends RedissonTest {

    private static final String QUEUE = "redisson_lock_queue:{lock}";
    private static final String TIMEOUTS = "redisson_lock_timeout:{lock}";

    @Test
    void servesTenThreadsInTheOrderOfArrival() throws Exception {
        RLock mine = redisson.getFairLock("lock");
        mine.lock();
        List<Integer> served = Collections.synchronizedList(new ArrayList<>());
        List<CompletableFuture<Void>> waiters = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            int number = i;
            RLock theirs = (i % 2 == 0 ? redisson : other).getFairLock("lock");
            waiters.add(spawn(() -> {
                theirs.lock();
                served.add(number);
                theirs.unlock();
            }));
            eventually("the waiter stands in the queue", () -> queue().size() == number + 1);
        }
        assertEquals(queue(), ask("ZRANGE", TIMEOUTS, 0, -1));
        assertFalse(elsewhere(() -> mine.tryLock()));  // no overtaking
        mine.unlock();
        for (CompletableFuture<Void> waiter : waiters) {
            waiter.get(20, SECONDS);
        }
        assertEquals(IntStream.range(0, 10).boxed().toList(), served);
        assertEquals(0L, this.<Long>ask("EXISTS", "lock", QUEUE, TIMEOUTS));
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void whoGivesUpLeavesTheQueue() throws Exception {
        RLock mine = redisson.getFairLock("lock");
        mine.lock();
        CompletableFuture<Boolean> impatient = spawn(() -> other.getFairLock("lock").tryLock(700, MILLISECONDS));
        eventually("the impatient one is first", () -> queue().size() == 1);
        CompletableFuture<Boolean> patient = spawn(() -> {
            RLock theirs = other.getFairLock("lock");
            boolean locked = theirs.tryLock(30, SECONDS);
            theirs.unlock();
            return locked;
        });
        eventually("the patient one is second", () -> queue().size() == 2);
        String second = queue().get(1);
        assertFalse(impatient.get(20, SECONDS));
        eventually("only the patient one waits", () -> queue().equals(List.of(second)));
        assertEquals(List.of(second), ask("ZRANGE", TIMEOUTS, 0, -1));
        mine.unlock();
        assertTrue(patient.get(20, SECONDS));
        assertEquals(0L, this.<Long>ask("EXISTS", "lock", QUEUE, TIMEOUTS));
    }

    @Test
    void deadWaiterIsSkippedAfterItsTime() throws Exception {
        Config impatient = config().setFairLockWaitTimeout(500);
        RLock mine = client(impatient).getFairLock("lock");
        mine.lock(1, SECONDS);
        try (Proxy wire = new Proxy(server.port())) {
            RedissonClient dying = client(settings.config(wire.port()).setFairLockWaitTimeout(500));
            spawn(() -> dying.getFairLock("lock").lock());
            eventually("it waits", () -> queue().size() == 1);
            wire.cut();
            RLock next = client(impatient).getFairLock("lock");
            assertTrue(next.tryLock(20, SECONDS));
            assertEquals(List.of(), queue());
            next.unlock();
        }
    }

    @Test
    void isReentrantAndKnowsStrangers() {
        RLock mine = redisson.getFairLock("lock");
        RLock theirs = other.getFairLock("lock");
        mine.lock();
        mine.lock();
        assertEquals(2, mine.getHoldCount());
        assertFalse(theirs.tryLock());
        assertThrows(IllegalMonitorStateException.class, theirs::unlock);
        mine.unlock();
        assertTrue(mine.isHeldByCurrentThread());
        mine.unlock();
        assertFalse(mine.isLocked());
        assertTrue(theirs.tryLock());
        assertTrue(theirs.forceUnlock());
    }

    private List<String> queue() {
        return ask("LRANGE", QUEUE, 0, -1);
    }
}
