package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RFencedLock;
import org.redisson.api.RObject;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.At;
import redlatch.harness.Control.Gate;
import redlatch.harness.Control.Guard;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;
import static redlatch.harness.Control.Match.*;

/** Fencing tokens, and a store that refuses a token smaller than an earlier one. */
class FencingTest extends FaultTest {

    private static final int MASTER = 0;
    private static final int REPLICA = 1;
    private static final int LEASE_S = 10;

    private RFencedLock mine;
    private RFencedLock theirs;

    FencingTest() {
        super(2, LONG_MS);
    }

    @BeforeEach
    void connect() {
        mine = client("first").getFencedLock("lock");
        theirs = client("second").getFencedLock("lock");
    }

    @Test
    void pausedHolderIsFencedOff() {
        try (Guard clock = control.stopClock()) {
            long token = mine.tryLockAndGetToken(0, LEASE_S, SECONDS);
            control.advance(LEASE_S * 1000 + 1);
            long next = theirs.tryLockAndGetToken(0, LEASE_S, SECONDS);
            assertTrue(control.write("document", "theirs", next));
            assertFalse(control.write("document", "mine", token));
        }
    }

    @Test
    void afterFailoverTwoHoldersHaveTheSameToken() {
        control.replicate(REPLICA, MASTER);
        control.cutLink(REPLICA);
        long token = mine.lockAndGetToken();
        control.stop(MASTER);
        control.promote(REPLICA);
        long next = client("third", REPLICA).getFencedLock("lock").lockAndGetToken();
        assertEquals(token, next);
        assertTrue(control.write("document", "theirs", next));
        assertTrue(control.write("document", "mine", token));
    }

    @Test
    void deletingTheLockBeginsTheTokensAnew() {
        assertEquals(1L, mine.lockAndGetToken());
        mine.unlock();
        assertEquals(2L, mine.lockAndGetToken());
        ((RObject) mine).delete();
        assertEquals(1L, mine.lockAndGetToken());
    }

    @Test
    void askingForTheTokenLateGivesTheOneOfTheNextHolder() throws Exception {
        try (Guard clock = control.stopClock();
             Gate gate = control.gate(At.PRE, command("get").client("first"))) {
            mine.lock(LEASE_S, SECONDS);
            Task<Long> token = spawn(() -> mine.getToken());
            gate.await(1);
            control.advance(LEASE_S * 1000 + 1);
            long next = theirs.lockAndGetToken();
            gate.release();
            assertEquals(next, token.get(20, SECONDS));
            assertTrue(control.write("document", "theirs", next));
            assertTrue(control.write("document", "mine", token.get()));
        }
    }

    @Test
    void enteringAgainFencesTheHolderOff() {
        long outer = mine.lockAndGetToken();
        long inner = mine.lockAndGetToken();
        assertTrue(control.write("document", "inner", inner));
        assertFalse(control.write("document", "outer", outer));
    }

    @Test
    void theLeaseOfLockAndGetTokenIsNotUsed() {
        try (Guard clock = control.stopClock()) {
            mine.lockAndGetToken(5, SECONDS);
            assertEquals(30_000L, this.<Long>ask("PTTL", "lock"));
        }
    }
}
