package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisOutOfMemoryException;
import org.redisson.client.RedisResponseTimeoutException;
import org.redisson.config.Config;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.At;
import redlatch.harness.Control.Fault;
import redlatch.harness.Control.Gate;
import redlatch.harness.Control.Guard;
import redlatch.harness.Control.State;

import java.util.List;
import java.util.concurrent.ExecutionException;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;
import static redlatch.harness.Control.Match.*;

/** Leases that expire while they are held, and lost keys of locks. The server's clock is stopped. */
class LeaseTest extends FaultTest {

    /** The lease. The client renews it after a third. */
    private static final int LEASE_MS = 900;

    private static final long HOUR_MS = 3_600_000;

    private RedissonClient redisson;
    private RedissonClient inAnHour;
    private RLock mine;
    private RLock theirs;

    LeaseTest() {
        super(1, SHORT_MS);
    }

    @BeforeEach
    void connect() {
        control.stopClock();
        redisson = watched("first");
        mine = redisson.getLock("lock");
        theirs = watched("second").getLock("lock");
        inAnHour = client("ahead");
        control.addToArgument(script("fair.try_acquire").client("ahead"), 3, HOUR_MS);
        control.addToArgument(script("fair.acquire").client("ahead"), 4, HOUR_MS);
    }

    private RedissonClient watched(String name) {
        Config config = new Config().setLockWatchdogTimeout(LEASE_MS);
        tuned(config.useSingleServer(), name).setAddress(address(0)).setConnectionMinimumIdleSize(8);
        return client(config);
    }

    @Test
    void pausedHolderLosesTheLockAndIsNotTold() throws Exception {
        mine.lock();
        try (Fault renewals = control.watch(script("rlock.renew").client("first"))) {
            try (Gate pause = control.gate(At.PRE, any().client("first"))) {
                pause.await(1);
                control.advance(LEASE_MS + 1);
                assertTrue(theirs.tryLock());
            }
            renewals.awaitHits(1);
        }
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        assertTrue(theirs.isHeldByCurrentThread());
    }

    @Test
    void lostRenewalLosesTheLock() throws Exception {
        mine.lock();
        try (Fault lost = control.dropRequest(script("rlock.renew").client("first"))) {
            lost.awaitHits(1);
            control.advance(LEASE_MS + 1);
            assertTrue(theirs.tryLock());
            lost.cut();
        }
        assertFalse(mine.isHeldByCurrentThread());
    }

    @Test
    void renewalsGoOnWithoutMemory() throws Exception {
        mine.lock();
        try (Guard full = control.state(0, State.OOM); Fault renewals = control.watch(script("rlock.renew"))) {
            renewals.awaitHits(1);
            control.advance(LEASE_MS - 1);
            renewals.awaitHits(3);
            control.advance(LEASE_MS - 1);
            assertEquals(List.of("1"), counts("lock"));
        }
    }

    @Test
    void lockThatWasNotReleasedForWantOfMemoryIsNotRenewed() throws Exception {
        mine.lock();
        try (Guard full = control.state(0, State.OOM)) {
            assertThrows(RedisOutOfMemoryException.class, mine::unlock);
        }
        assertIsNotRenewed();
    }

    @Test
    void lockWhoseReplyWasLostIsNotRenewed() throws Exception {
        loadScripts(mine);
        try (Fault lost = control.dropReply(script("rlock.acquire").nth(1))) {
            assertThrows(RedisResponseTimeoutException.class, () -> mine.tryLock());
            lost.cut();
        }
        assertIsNotRenewed();
    }

    /** The lock exists, but not while another lock is renewed. */
    private void assertIsNotRenewed() throws Exception {
        redisson.getLock("kept").lock();
        try (Fault renewed = control.watch(script("rlock.renew").key("lock"));
             Fault others = control.watch(script("rlock.renew").key("kept"))) {
            others.awaitHits(2);
            assertEquals(0, renewed.hits());
        }
        assertEquals(List.of("1"), counts("lock"));
    }

    @Test
    void lockThatWasDeletedIsAnothersAndItsHolderIsNotTold() {
        mine.lock();
        ask("FLUSHALL");
        assertTrue(theirs.tryLock());
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        assertTrue(theirs.isHeldByCurrentThread());
    }

    @Test
    void lockWhoseEndNobodyNoticedIsFree() {
        mine.lock(1, SECONDS);
        ask("DEBUG", "SET-ACTIVE-EXPIRE", 0);
        control.advance(1_001);
        assertEquals(1L, this.<Long>ask("DBSIZE"));
        assertTrue(theirs.tryLock());
        ask("DEBUG", "SET-ACTIVE-EXPIRE", 1);
    }

    @Test
    void whoLeavesAFairQueueUnheardIsDroppedAfterItsTime() throws Exception {
        RLock fair = redisson.getFairLock("fair");
        leaveUnheard(fair);
        assertFalse(inAnHour.getFairLock("fair").tryLock());
        assertEquals(0L, this.<Long>ask("LLEN", "redisson_lock_queue:{fair}"));
        fair.unlock();
        assertTrue(inAnHour.getFairLock("fair").tryLock());
    }

    @Test
    void whoLeavesAFairQueueUnheardBlocksItForEverWhenItsTimeIsLost() throws Exception {
        RLock fair = redisson.getFairLock("fair");
        leaveUnheard(fair);
        assertTrue(control.lose(0, "redisson_lock_timeout:{fair}"));
        fair.unlock();
        assertFalse(fair.isLocked());
        assertFalse(inAnHour.getFairLock("fair").tryLock());
        assertFalse(inAnHour.getFairLock("fair").tryLock(1, SECONDS));
    }

    /** The queue contains a waiter that has given up, but whose message about it was lost. */
    private void leaveUnheard(RLock fair) throws Exception {
        RLock gone = client("gone").getFairLock("fair");
        fair.lock(30, SECONDS);
        try (Fault lost = control.dropRequest(script("fair.abandon"))) {
            assertThrows(ExecutionException.class, () -> spawn(() -> gone.tryLock(1, SECONDS)).get(20, SECONDS));
            assertEquals(1, lost.hits());
        }
        assertEquals(1L, this.<Long>ask("LLEN", "redisson_lock_queue:{fair}"));
    }

    @Test
    void clientWhoseClockIsAheadDropsThoseWhoWait() throws Exception {
        RLock fair = redisson.getFairLock("fair");
        fair.lock(30, SECONDS);
        RedissonClient waiting = client("waiting");
        Task<Boolean> waiter = spawn(() -> waiting.getFairLock("fair").tryLock(20, 30, SECONDS));
        eventually("it waits", waiter::isParked);
        assertFalse(inAnHour.getFairLock("fair").tryLock());
        assertEquals(0L, this.<Long>ask("LLEN", "redisson_lock_queue:{fair}"));
        fair.unlock();
        assertTrue(waiter.isParked(), "the lock is free and nobody tells it");
        assertTrue(inAnHour.getFairLock("fair").tryLock());
        long aheadMs = skewMs("ahead") - skewMs("waiting");
        assertTrue(HOUR_MS - 60_000 < aheadMs && aheadMs < HOUR_MS + 60_000, aheadMs + " ms");
    }

    @Test
    void readerWhoseKeyIsLostLosesTheLockWhenAnotherLeaves() {
        RReadWriteLock first = redisson.getReadWriteLock("rw");
        RReadWriteLock second = client("second").getReadWriteLock("rw");
        first.readLock().lock(30, SECONDS);
        second.readLock().lock(30, SECONDS);
        String owner = redisson.getId() + ":" + Thread.currentThread().getId();
        assertTrue(control.lose(0, "{rw}:" + owner + ":rwlock_timeout:1"));
        assertFalse(second.writeLock().tryLock());
        second.readLock().unlock();
        assertTrue(second.writeLock().tryLock());
    }
}
