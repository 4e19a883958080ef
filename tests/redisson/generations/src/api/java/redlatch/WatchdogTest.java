package redlatch;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static org.junit.jupiter.api.Assertions.*;

/** Renewal differs between releases, and between read locks and other locks. */
class WatchdogTest extends GenerationTest {

    @Test
    void locksOutliveTheirLeases() throws Exception {
        var reading = a.redisson.getReadWriteLock("reading").readLock();
        var locks = new ArrayList<>(List.of(a.redisson.getLock("plain"), a.redisson.getFairLock("fair"),
            a.redisson.getReadWriteLock("writing").writeLock(), reading, reading));
        locks.forEach(lock -> lock.lock());
        long end = System.nanoTime() + MILLISECONDS.toNanos(2 * Client.LEASE_MS + 500);
        while (System.nanoTime() < end) {
            for (String name : List.of("plain", "fair", "writing", "reading")) {
                long ttlMs = ttlMs(name);
                assertTrue(0 < ttlMs && ttlMs <= Client.LEASE_MS, name + ": " + ttlMs + " ms");
            }
            Thread.sleep(20);
        }
        locks.forEach(lock -> assertTrue(lock.isHeldByCurrentThread()));
        locks.forEach(lock -> lock.unlock());
        locks.forEach(lock -> assertFalse(lock.isLocked()));
    }
}
