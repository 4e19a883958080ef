package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redlatch.harness.Proxy;
import redlatch.harness.Resp;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Leases that the client renews after a third of their time, and leases that expire. */
class WatchdogTest extends RedissonTest {

    private static final int LEASE_MS = 3_000;

    @Override
    Config config() {
        return super.config().setLockWatchdogTimeout(LEASE_MS);
    }

    @Test
    void locksOfEveryKindAreRenewedWhileTheClientLives() throws Exception {
        RReadWriteLock reading = redisson.getReadWriteLock("reading");
        RReadWriteLock stepping = redisson.getReadWriteLock("stepping");
        List<RLock> locks = new ArrayList<>(List.of(redisson.getLock("plain"), redisson.getFairLock("fair"),
            redisson.getSpinLock("spin"), redisson.getFencedLock("fenced"), redisson.getNonReentrantLock("once"),
            redisson.getReadWriteLock("writing").writeLock(), reading.readLock(), reading.readLock(),
            stepping.writeLock(), stepping.readLock()));
        for (int i = 0; i < 120; i++) {  // more than one batch of renewals
            locks.add(redisson.getLock("many:" + i));
        }
        locks.forEach(RLock::lock);
        Map<String, Renewals> renewals = new LinkedHashMap<>();
        locks.forEach(lock -> renewals.put(lock.getName(), new Renewals()));
        long end = System.nanoTime() + SECONDS.toNanos(7);  // more than two leases
        try (Resp resp = connect()) {
            while (System.nanoTime() < end) {
                renewals.forEach((name, seen) -> seen.add(resp.call("PTTL", name)));
                Thread.sleep(20);
            }
        }
        renewals.forEach((name, seen) -> {
            assertTrue(seen.lowestMs > 0, name + " was lost");
            assertTrue(seen.count >= 4, name + " was renewed " + seen.count + " times in seven seconds");
        });
        for (int i = locks.size(); i-- > 0; ) {
            locks.get(i).unlock();
        }
        eventually("nothing is left but the fencing token",
            () -> ask("KEYS", "*").equals(List.of("redisson_lock_token:{fenced}")));
    }

    private static final class Renewals {
        long lastMs;
        long lowestMs = LEASE_MS;
        int count;

        void add(long ttlMs) {
            if (lastMs > 0 && ttlMs > lastMs) {
                count++;
            }
            lastMs = ttlMs;
            lowestMs = Math.min(lowestMs, ttlMs);
        }
    }

    @Test
    void lockIsFreeOneLeaseAfterItsClientIsCutOff() throws Exception {
        try (Proxy wire = new Proxy(server.port())) {
            RedissonClient lost = client(settings.config(wire.port()).setLockWatchdogTimeout(LEASE_MS));
            lost.getLock("lock").lock();
            wire.cut();
            assertFreeAfterWhatIsLeftOf("lock");
        }
    }

    @Test
    void lockIsFreeOneLeaseAfterItsClientShutDown() throws Exception {
        RedissonClient gone = client();
        gone.getLock("lock").lock();
        gone.shutdown();
        assertFreeAfterWhatIsLeftOf("lock");
    }

    private void assertFreeAfterWhatIsLeftOf(String name) throws Exception {
        long start = System.nanoTime();
        long leftMs = ttlMs(name);
        assertTrue(0 < leftMs && leftMs <= LEASE_MS, leftMs + " ms");
        assertTrue(redisson.getLock(name).tryLock(20, SECONDS));
        long waitedMs = NANOSECONDS.toMillis(System.nanoTime() - start);
        assertTrue(leftMs - 1 <= waitedMs && waitedMs < leftMs + 2_000, waitedMs + " ms for " + leftMs + " ms");
        redisson.getLock(name).unlock();
    }

    @Test
    void workLongerThanAFixedLeaseLetsTheNextOneIn() throws Exception {
        RLock mine = redisson.getLock("lock");
        RLock theirs = other.getLock("lock");
        long start = System.nanoTime();
        mine.lock(3, SECONDS);
        assertTrue(theirs.tryLock(5, 30, SECONDS));  // the work of the first one takes 5 s
        long waitedMs = NANOSECONDS.toMillis(System.nanoTime() - start);
        assertTrue(2_990 <= waitedMs, waitedMs + " ms");
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        assertTrue(theirs.isHeldByCurrentThread());
        theirs.unlock();
    }

    @Test
    void workLongerThanTheLeaseKeepsAWatchedLock() throws Exception {
        RLock mine = redisson.getLock("lock");
        RLock theirs = other.getLock("lock");
        mine.lock();
        assertFalse(theirs.tryLock(5, SECONDS));
        assertTrue(mine.isHeldByCurrentThread());
        mine.unlock();
        assertTrue(theirs.tryLock());
        theirs.unlock();
    }

    @Test
    void unlockEndsTheRenewal() throws Exception {
        RLock mine = redisson.getLock("lock");
        mine.lock();
        mine.unlock();
        mine.lock(LEASE_MS / 2, MILLISECONDS);
        eventually("the second lease runs out", () -> !mine.isLocked());
    }
}
