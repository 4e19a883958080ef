package redlatch;

import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import redlatch.harness.Concurrently.Body;
import redlatch.harness.Concurrently.Task;

import java.util.Arrays;
import java.util.stream.Stream;

import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** A message wakes a waiter long before the lease of 30 s ends, when the waiter would retry by itself. */
@Isolated
class WakeUpTest extends RedissonTest {

    private static final int ROUNDS = 5;
    private static final long WELL_UNDER_MS = 100;

    /** One client holds and releases the object; the other waits for it, then releases it too. */
    record Handover(String name, Body hold, Body release, Body enter, Body leave) {

        static Handover of(String name, RLock mine, RLock theirs) {
            return new Handover(name, () -> mine.lock(30, SECONDS), mine::unlock,
                () -> theirs.lock(30, SECONDS), theirs::unlock);
        }

        Handover by(String how, Body release) {
            return new Handover(name + " by " + how, hold, release, enter, leave);
        }

        @Override
        public String toString() {
            return name;
        }
    }

    Stream<Handover> handovers() {
        Handover plain = Handover.of("lock", redisson.getLock("lock"), other.getLock("lock"));
        Handover fair = Handover.of("fair lock", redisson.getFairLock("lock"), other.getFairLock("lock"));
        RLock writer = redisson.getReadWriteLock("lock").writeLock();
        RLock reader = redisson.getReadWriteLock("lock").readLock();
        RLock nextWriter = other.getReadWriteLock("lock").writeLock();
        RLock nextReader = other.getReadWriteLock("lock").readLock();
        RSemaphore semaphore = redisson.getSemaphore("semaphore");
        RSemaphore sameSemaphore = other.getSemaphore("semaphore");
        RCountDownLatch latch = redisson.getCountDownLatch("latch");
        RCountDownLatch sameLatch = other.getCountDownLatch("latch");
        return Stream.of(
            plain, plain.by("force", other.getLock("lock")::forceUnlock),
            fair, fair.by("force", other.getFairLock("lock")::forceUnlock),
            Handover.of("fenced lock", redisson.getFencedLock("lock"), other.getFencedLock("lock")),
            Handover.of("non-reentrant lock", redisson.getNonReentrantLock("lock"), other.getNonReentrantLock("lock")),
            Handover.of("writer to writer", writer, nextWriter),
            Handover.of("writer to reader", writer, nextReader),
            Handover.of("reader to writer", reader, nextWriter),
            new Handover("semaphore", () -> semaphore.trySetPermits(0), semaphore::release,
                sameSemaphore::acquire, semaphore::delete),
            new Handover("latch", () -> latch.trySetCount(1), latch::countDown, sameLatch::await, () -> { }));
    }

    @ParameterizedTest
    @MethodSource("handovers")
    void isByMessage(Handover handover) throws Exception {
        long[] wokenAfterMs = new long[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            handover.hold.run();
            Task<Long> entered = spawn(() -> {
                handover.enter.run();
                long now = System.nanoTime();
                handover.leave.run();
                return now;
            });
            eventually("it waits", entered::isParked);
            assertEquals(1, channels().size());
            long released = System.nanoTime();
            handover.release.run();
            wokenAfterMs[i] = NANOSECONDS.toMillis(entered.get(20, SECONDS) - released);
            eventually("no subscription is left", () -> channels().isEmpty());
        }
        Arrays.sort(wokenAfterMs);
        long median = wokenAfterMs[ROUNDS / 2];
        assertTrue(median < WELL_UNDER_MS, median + " ms");
    }
}
