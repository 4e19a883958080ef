package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisTimeoutException;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.At;
import redlatch.harness.Control.Fault;
import redlatch.harness.Control.Gate;
import redlatch.harness.Control.Match;

import java.util.List;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;
import static redlatch.harness.Control.Match.*;

/** Messages and subscriptions that are lost, delayed or repeated while a client waits for them. */
class LostMessageTest extends FaultTest {

    private static final Match UNLOCKED = channel("redisson_lock__channel:*").client("waiter");
    private static final Match ATTEMPT = script("rlock.acquire").client("waiter");
    private static final int LEASE_S = 2;

    private RedissonClient waiting;
    private RLock mine;
    private RLock theirs;

    LostMessageTest() {
        super(1, LONG_MS);
    }

    @BeforeEach
    void connect() {
        waiting = client("waiter");
        mine = client("holder").getLock("lock");
        theirs = waiting.getLock("lock");
    }

    private Task<Boolean> waiter() throws Exception {
        Task<Boolean> waiter = spawn(() -> theirs.tryLock(20, 30, SECONDS));
        eventually("it waits", waiter::isParked);
        return waiter;
    }

    @Test
    void lostMessageIsMadeUpForWhenTheLeaseWouldHaveEnded() throws Exception {
        mine.lock(LEASE_S, SECONDS);
        try (Fault lost = control.dropMessage(UNLOCKED); Fault attempts = control.watch(ATTEMPT)) {
            Task<Boolean> waiter = waiter();
            mine.unlock();
            assertTrue(waiter.get(20, SECONDS));
            assertEquals(1, lost.hits());
            assertEquals(3, attempts.hits(), "before and after it subscribed, and when the lease was over");
        }
    }

    @Test
    void lostMessageOfASemaphoreLeavesTheWaiterWaiting() throws Exception {
        RSemaphore semaphore = waiting.getSemaphore("semaphore");
        semaphore.trySetPermits(0);
        Task<Void> waiter = spawn(() -> semaphore.acquire());
        eventually("it waits", waiter::isParked);
        try (Fault lost = control.dropMessage(channel("redisson_sc:*").nth(1))) {
            semaphore.release();
            assertEquals(1, lost.hits());
            assertEquals(1, semaphore.availablePermits());
            assertTrue(waiter.isParked(), "there is a permit and nobody looks");
            semaphore.release();
            waiter.get(20, SECONDS);
        }
        assertEquals(1, semaphore.availablePermits());
    }

    @Test
    void lostMessageOfACountDownLatchLeavesTheWaiterWaiting() throws Exception {
        RCountDownLatch latch = waiting.getCountDownLatch("latch");
        latch.trySetCount(1);
        Task<Void> waiter = spawn(() -> latch.await());
        eventually("it waits", waiter::isParked);
        try (Fault lost = control.dropMessage(channel("redisson_countdownlatch__*").nth(1))) {
            latch.countDown();
            assertEquals(1, lost.hits());
            assertEquals(0, latch.getCount());
            assertTrue(waiter.isParked(), "the count is zero and nobody looks");
        }
        assertTrue(latch.trySetCount(1));
        latch.countDown();
        waiter.get(20, SECONDS);
    }

    @Test
    void lateMessageWakesLate() throws Exception {
        mine.lock(30, SECONDS);
        Task<Boolean> waiter = waiter();
        try (Gate gate = control.gate(At.PUSH, UNLOCKED)) {
            mine.unlock();
            gate.await(1);
            assertFalse(exists("lock"));
            assertTrue(waiter.isParked());
        }
        assertTrue(waiter.get(20, SECONDS));
    }

    @Test
    void repeatedMessageWakesOneMoreInVain() throws Exception {
        mine.lock(30, SECONDS);
        try (Fault twice = control.repeatMessage(UNLOCKED.nth(1), 2); Fault attempts = control.watch(ATTEMPT)) {
            List<Task<Boolean>> waiters = List.of(waiter(), waiter());
            assertEquals(4, attempts.hits(), "each before and after it subscribed");
            mine.unlock();
            attempts.awaitHits(6);
            eventually("one has it, the other waits again", () ->
                waiters.stream().filter(Task::isDone).count() == 1 && waiters.stream().anyMatch(Task::isParked));
            assertEquals(List.of("1"), counts("lock"));
        }
    }

    @Test
    void messageBetweenTwoSubscriptionsIsMadeUpForWhenTheLeaseWouldHaveEnded() throws Exception {
        mine.lock(LEASE_S, SECONDS);
        try (Fault attempts = control.watch(ATTEMPT)) {
            Task<Boolean> waiter = waiter();
            try (Gate gate = control.gate(At.PRE, command("subscribe"))) {
                assertEquals(1L, this.<Long>ask("CLIENT", "KILL", "TYPE", "pubsub"));
                gate.await(1);
                mine.unlock();
            }
            eventually("it has subscribed again", () -> !this.<List<?>>ask("PUBSUB", "CHANNELS").isEmpty());
            assertTrue(waiter.isParked(), "the lock is free and nobody looks");
            assertTrue(waiter.get(20, SECONDS));
            assertEquals(3, attempts.hits());
        }
    }

    @Test
    void lateConfirmationOfTheSubscriptionEndsTheWait() throws Exception {
        mine.lock(30, SECONDS);
        try (Gate gate = control.gate(At.POST, command("subscribe"))) {
            assertFalse(theirs.tryLock(1, SECONDS));
            gate.await(1);
            RedisTimeoutException e = assertThrows(RedisTimeoutException.class, () -> theirs.lock());
            assertTrue(e.getMessage().startsWith("Unable to acquire subscription lock"), e.getMessage());
        }
        Task<Boolean> waiter = waiter();
        mine.unlock();
        assertTrue(waiter.get(20, SECONDS), "nothing of it is left behind");
    }
}
