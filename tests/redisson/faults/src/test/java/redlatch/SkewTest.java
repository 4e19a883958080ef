package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.Guard;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import static java.util.concurrent.TimeUnit.MINUTES;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Jumps of the clock of the machine that Redisson runs on. Needs {@code redlatch run}. */
class SkewTest extends FaultTest {

    /** The jump of row 30 of docs/scenarios.md: {@code SIM.CLOCK JUMP <ms> COMMAND}, an hour. */
    private static final long HOUR_MS = jumpOnThePage();

    SkewTest() {
        super(1, LONG_MS);
    }

    private static long jumpOnThePage() {
        try {
            String page = Files.readString(Path.of("../../docs/scenarios.md"));
            Matcher recipe = Pattern.compile("^> SIM\\.CLOCK JUMP (\\d+) COMMAND$", Pattern.MULTILINE).matcher(page);
            assertTrue(recipe.find(), "row 30 has a recipe for the clock of a command");
            return Long.parseLong(recipe.group(1));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void fairLockDropsThoseWhoCameBeforeTheClockWasSetForward() throws Exception {
        RLock fair = client("first").getFairLock("fair");
        fair.lock(30, SECONDS);
        RedissonClient waiting = client("waiting");
        Task<Boolean> waiter = spawn(() -> waiting.getFairLock("fair").tryLock(20, 30, SECONDS));
        eventually("it waits", waiter::isParked);
        try (Guard back = control.jumpOwnClock(HOUR_MS)) {
            RLock later = client("later").getFairLock("fair");
            assertFalse(later.tryLock());
            assertEquals(0L, this.<Long>ask("LLEN", "redisson_lock_queue:{fair}"));
            long aheadMs = skewMs("later");
            assertTrue(HOUR_MS - 60_000 < aheadMs && aheadMs < HOUR_MS + 60_000, aheadMs + " ms");
            fair.unlock();
            assertTrue(later.tryLock());
        }
    }

    @Test
    void permitIsTakenBackWhenTheClockIsSetForward() throws Exception {
        RPermitExpirableSemaphore permits = client("first").getPermitExpirableSemaphore("permits");
        assertTrue(permits.trySetPermits(1));
        String mine = permits.tryAcquire(0, 10, MINUTES);
        assertNotNull(mine);
        assertNull(permits.tryAcquire());
        try (Guard back = control.jumpOwnClock(HOUR_MS)) {
            assertNotNull(permits.tryAcquire(0, 10, MINUTES), "its lease is over by the clock of the client");
            assertFalse(permits.tryRelease(mine));
        }
    }

    @Test
    void leaseOfAPlainLockDoesNotDependOnTheClient() throws Exception {
        RLock lock = client("first").getLock("lock");
        lock.lock(30, SECONDS);
        try (Guard back = control.jumpOwnClock(HOUR_MS)) {
            RLock later = client("later").getLock("lock");
            assertFalse(later.tryLock());
            long ttlMs = later.remainTimeToLive();
            assertTrue(20_000 < ttlMs && ttlMs <= 30_000, ttlMs + " ms");
            assertTrue(lock.isHeldByCurrentThread());
            lock.unlock();
        }
    }
}
