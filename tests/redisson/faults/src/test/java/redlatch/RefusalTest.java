package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RScript.Mode;
import org.redisson.api.RScript.ReturnType;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisBusyException;
import org.redisson.client.RedisConnectionException;
import org.redisson.client.RedisException;
import org.redisson.client.RedisOutOfMemoryException;
import org.redisson.client.RedisResponseTimeoutException;
import org.redisson.config.Config;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.At;
import redlatch.harness.Control.Fault;
import redlatch.harness.Control.Gate;
import redlatch.harness.Control.Guard;
import redlatch.harness.Control.State;
import redlatch.harness.Resp;

import java.util.List;
import java.util.concurrent.ExecutionException;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;
import static redlatch.harness.Control.Match.*;

/** A server that refuses requests, pauses, restarts, or fails in the middle of a script. */
class RefusalTest extends FaultTest {

    private RedissonClient redisson;
    private RLock lock;

    RefusalTest() {
        super(1, SHORT_MS);
    }

    @BeforeEach
    void connect() {
        redisson = client("app");
        lock = redisson.getLock("lock");
        loadScripts(lock);
    }

    @ParameterizedTest
    @EnumSource(names = {"READONLY", "LOADING", "BUSY", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN"})
    void whatIsRefusedForAWhileIsSentAgain(State state) throws Exception {
        try (Gate gate = control.gate(At.PRE, script("rlock.acquire"))) {
            Task<Boolean> locked = spawn(() -> lock.tryLock());
            gate.await(1);
            try (Guard refusing = control.state(0, state)) {
                gate.release();
                gate.await(1);
            }
            gate.release();
            assertTrue(locked.get(20, SECONDS));
        }
        assertEquals(List.of("1"), counts("lock"));
    }

    @ParameterizedTest
    @EnumSource(names = {"READONLY", "LOADING", "BUSY", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN"})
    void whatIsRefusedAlwaysIsThrown(State state) {
        try (Guard refusing = control.state(0, state); Fault sent = control.watch(script("rlock.acquire"))) {
            RedisException e = assertThrows(RedisException.class, () -> lock.tryLock());
            assertTrue(e.getMessage().startsWith(state.name()), e.getMessage());
            assertEquals(1 + RETRIES, sent.hits());
        }
        assertFalse(exists("lock"));
    }

    @Test
    void whatIsRedirectedIsSentAgainToTheSameServer() {
        try (Fault moved = control.fault(script("rlock.acquire").nth(1), "REPLY", "-MOVED 1 127.0.0.1:1\r\n")) {
            assertTrue(lock.tryLock());
            assertEquals(1, moved.hits());
        }
        assertEquals(List.of("1"), counts("lock"));
    }

    @Test
    void withoutMemoryAnAcquireIsThrownAtOnce() {
        try (Guard full = control.state(0, State.OOM); Fault sent = control.watch(script("rlock.acquire"))) {
            assertThrows(RedisOutOfMemoryException.class, () -> lock.tryLock());
            assertEquals(1, sent.hits());
        }
        assertFalse(exists("lock"));
    }

    @Test
    void withoutMemoryAnUnlockIsThrownAndTheLockStays() {
        lock.lock();
        try (Guard full = control.state(0, State.OOM)) {
            assertThrows(RedisOutOfMemoryException.class, lock::unlock);
        }
        assertEquals(List.of("1"), counts("lock"));
        lock.unlock();
        assertFalse(exists("lock"));
    }

    @Test
    void restartWithoutDataFreesTheLockAndNobodyIsTold() throws Exception {
        lock.lock();
        control.stopAndWipe(0).close();
        RLock theirs = client("other").getLock("lock");
        assertTrue(theirs.tryLock());
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
        assertTrue(theirs.isHeldByCurrentThread());
    }

    @Test
    void acquireThatWaitsInAPausedServerThrowsAndHoldsLater() throws Exception {
        try (Guard paused = control.pause(0)) {
            assertThrows(RedisResponseTimeoutException.class, () -> lock.tryLock());
        }
        eventually("it ran", () -> exists("lock"));
        assertTrue(lock.isHeldByCurrentThread());
        lock.unlock();
    }

    @Test
    void serverThatIsFullLetsNobodyIn() {
        try (Guard full = control.state(0, State.MAXCLIENTS)) {
            assertThrows(RedisConnectionException.class, () -> client("late"));
            assertTrue(lock.tryLock(), "who is in is served");
        }
    }

    @Test
    void acquireThatFailsBeforeItsLeaseThrowsAndHoldsForEver() {
        try (Fault broken = control.failCall(script("rlock.acquire").nth(1), 3)) {
            assertThrows(RedisException.class, () -> lock.tryLock());
        }
        assertEquals(List.of("1"), counts("lock"));
        assertEquals(-1L, this.<Long>ask("PTTL", "lock"));
    }

    @Test
    void unlockThatFailsAtItsLastCallThrowsAndReleases() {
        lock.lock();
        try (Fault broken = control.failCall(script("rlock.unlock").nth(1), 6)) {
            assertThrows(RedisException.class, lock::unlock);
        }
        assertFalse(exists("lock"));
    }

    @Test
    void scriptThatDoesNotEndIsInTheWayUntilItIsKilled() throws Exception {
        ask("CONFIG", "SET", "busy-reply-threshold", 20);
        Config patient = new Config();
        tuned(patient.useSingleServer(), "looping").setAddress(address(0)).setTimeout(LONG_MS);
        RScript scripts = client(patient).getScript();
        Task<Object> endless = spawn(() -> scripts.eval(Mode.READ_WRITE, "while true do end", ReturnType.VALUE));
        eventually("it is busy", this::isBusy);
        assertThrows(RedisBusyException.class, () -> lock.tryLock());
        ask("SCRIPT", "KILL");
        ExecutionException e = assertThrows(ExecutionException.class, () -> endless.get(20, SECONDS));
        assertTrue(e.getCause().getMessage().contains("Script killed by user"), e.getCause().getMessage());
        assertTrue(lock.tryLock());
    }

    private boolean isBusy() {
        try {
            ask("PING");
            return false;
        } catch (Resp.Error e) {
            return e.getMessage().startsWith("BUSY ");
        }
    }
}
