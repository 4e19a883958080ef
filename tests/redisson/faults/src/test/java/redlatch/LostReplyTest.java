package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.RedisResponseTimeoutException;
import org.redisson.config.Config;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.Fault;

import java.util.List;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;
import static redlatch.harness.Control.Match.*;

/** Requests and replies of one server that are lost, delayed, repeated or truncated, without retries. */
class LostReplyTest extends FaultTest {

    private RedissonClient redisson;
    private RLock lock;

    LostReplyTest() {
        super(1, SHORT_MS);
    }

    @BeforeEach
    void connect() {
        redisson = client("app");
        lock = redisson.getLock("lock");
        loadScripts(lock);
    }

    @Test
    void acquireWhoseReplyIsLostThrowsAndHolds() {
        try (Fault lost = control.dropReply(script("rlock.acquire").nth(1))) {
            assertThrows(RedisResponseTimeoutException.class, () -> lock.tryLock());
        }
        assertEquals(List.of("1"), counts("lock"));
    }

    @Test
    void acquireInTheWaitLoopWhoseReplyIsLostReturnsFalseAndHolds() throws Exception {
        RLock theirs = client("other").getLock("lock");
        theirs.lock();
        try (Fault lost = control.dropReply(script("rlock.acquire").client("app").nth(3))) {
            Task<Boolean> waiter = spawn(() -> lock.tryLock(20, 60, SECONDS));
            eventually("it waits", waiter::isParked);
            theirs.unlock();
            assertFalse(waiter.get(20, SECONDS));
            assertEquals(1, lost.hits());
        }
        assertEquals(List.of("1"), counts("lock"));
        assertFalse(theirs.tryLock());
    }

    @Test
    void lostAcquireThrowsAndHoldsNothing() {
        try (Fault lost = control.dropRequest(script("rlock.acquire").nth(1))) {
            assertThrows(RedisResponseTimeoutException.class, () -> lock.tryLock());
            assertEquals(1, lost.hits());
        }
        assertFalse(exists("lock"));
    }

    @Test
    void repeatedAcquireCountsTwice() {
        try (Fault twice = control.repeat(script("rlock.acquire").nth(1), 2)) {
            assertTrue(lock.tryLock());
            assertEquals(1, twice.hits());
        }
        assertEquals(List.of("2"), counts("lock"));
        lock.unlock();
        assertEquals(List.of("1"), counts("lock"));
    }

    @Test
    void repeatedUnlockCountsOnce() {
        lock.lock();
        lock.lock();
        try (Fault twice = control.repeat(script("rlock.unlock"), 2)) {
            lock.unlock();
            assertEquals(List.of("1"), counts("lock"));
            lock.unlock();
            assertEquals(2, twice.hits());
        }
        assertFalse(exists("lock"));
    }

    @Test
    void unlockWhoseReplyIsLostThrowsAndReleases() {
        lock.lock();
        try (Fault lost = control.dropReply(script("rlock.unlock").nth(1))) {
            assertThrows(RedisResponseTimeoutException.class, lock::unlock);
            assertFalse(exists("lock"));
            lost.cut();
        }
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
    }

    @Test
    void lostUnlockThrowsAndHoldsSoThatTheThreadEntersAgain() {
        lock.lock();
        try (Fault lost = control.dropRequest(script("rlock.unlock").nth(1))) {
            assertThrows(RedisResponseTimeoutException.class, lock::unlock);
            lost.cut();
        }
        assertTrue(lock.tryLock());
        assertEquals(List.of("2"), counts("lock"));
    }

    @Test
    void repeatedReleasesAndCountDownsCountTwice() {
        RSemaphore semaphore = redisson.getSemaphore("semaphore");
        RCountDownLatch latch = redisson.getCountDownLatch("latch");
        semaphore.trySetPermits(1);
        latch.trySetCount(3);
        try (Fault release = control.repeat(script("semaphore.release"), 2);
             Fault count = control.repeat(script("latch.count_down"), 2)) {
            semaphore.release();
            latch.countDown();
        }
        assertEquals(3, semaphore.availablePermits());
        assertEquals(1, latch.getCount());
    }

    @Test
    void repeatedAcquireOfAPermitLosesOne() throws Exception {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore("permits");
        semaphore.trySetPermits(5);
        try (Fault twice = control.repeat(script("permit.acquire"), 2)) {
            assertNotNull(semaphore.tryAcquire());
        }
        assertEquals(3, semaphore.availablePermits());
        assertEquals(1, semaphore.acquiredPermits());
    }

    @Test
    void resetInTheMiddleOfAReplyThrowsAndHolds() {
        try (Fault reset = control.closeAfterBytes(script("rlock.acquire").nth(1), 3)) {
            assertThrows(RedisResponseTimeoutException.class, () -> lock.tryLock());
            assertEquals(1, reset.hits());
        }
        assertEquals(List.of("1"), counts("lock"));
        lock.unlock();
        assertFalse(exists("lock"));
    }

    @Test
    void slowReplyIsALostOne() {
        try (Fault slow = control.delayReply(script("rlock.acquire").nth(1), 3 * SHORT_MS)) {
            assertThrows(RedisResponseTimeoutException.class, () -> lock.tryLock());
        }
        assertEquals(List.of("1"), counts("lock"));
    }

    @Test
    void slowReplyHoldsBackThoseBehindIt() {
        RLock narrow = narrow(0).getLock("narrow");
        try (Fault slow = control.delayReply(script("rlock.acquire").nth(1), 20 * SHORT_MS)) {
            assertThrows(RedisResponseTimeoutException.class, () -> narrow.tryLock());
            assertThrows(RedisResponseTimeoutException.class, () -> narrow.isLocked());
            assertEquals(1, slow.hits());
        }
    }

    @Test
    void silentConnectionIsReplacedWhenAPingIsNotAnswered() throws Exception {
        RLock pinging = narrow(100).getLock("pinging");
        try (Fault lost = control.dropReply(script("rlock.acquire").nth(1))) {
            assertThrows(RedisResponseTimeoutException.class, () -> pinging.tryLock());
            eventually("it is connected again", () -> isAnswered(pinging));
        }
    }

    @Test
    void forgottenScriptIsLoadedAgain() {
        try (Fault forget = control.forgetScripts(script("rlock.*").nth(1));
             Fault loads = control.watch(command("script"))) {
            lock.lock();
            lock.unlock();
            assertEquals(1, forget.hits());
            assertEquals(2, loads.hits());
        }
        assertFalse(exists("lock"));
    }

    @Test
    void scriptThatIsForgottenAgainIsThrown() {
        try (Fault forget = control.forgetScripts(script("rlock.acquire"))) {
            RedisException e = assertThrows(RedisException.class, () -> lock.lock());
            assertTrue(e.getMessage().startsWith("NOSCRIPT"), e.getMessage());
            assertEquals(2, forget.hits());
        }
    }

    /** Creates a client whose commands all share one connection. */
    private RedissonClient narrow(int pingIntervalMs) {
        Config config = new Config();
        tuned(config.useSingleServer(), "app").setAddress(address(0)).setPingConnectionInterval(pingIntervalMs)
            .setConnectionMinimumIdleSize(1).setConnectionPoolSize(1);
        return client(config);
    }

    private static boolean isAnswered(RLock lock) {
        try {
            return lock.isLocked();
        } catch (RedisResponseTimeoutException e) {
            return false;
        }
    }
}
