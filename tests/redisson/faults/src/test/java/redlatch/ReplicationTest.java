package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.client.RedisReadonlyException;
import org.redisson.client.RedisResponseTimeoutException;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.At;
import redlatch.harness.Control.Fault;
import redlatch.harness.Control.Gate;
import redlatch.harness.Control.Guard;
import redlatch.harness.Control.Match;

import java.util.List;
import java.util.concurrent.ExecutionException;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;
import static redlatch.harness.Control.Match.*;

/** A master with two replicas that lag, do not confirm, or take its place. */
class ReplicationTest extends FaultTest {

    private static final int MASTER = 0;
    private static final int REPLICA = 1;
    private static final int OTHER_REPLICA = 2;
    private static final Match ACQUIRE = script("rlock.acquire");
    private static final Match UNLOCK = script("rlock.unlock");

    ReplicationTest() {
        super(3, SHORT_MS);
    }

    @BeforeEach
    void replicate() {
        control.replicate(REPLICA, MASTER);
        control.replicate(OTHER_REPLICA, MASTER);
    }

    /** How a client finds the master: from its configuration, or by polling all nodes. */
    enum Mode { MASTER_SLAVE, REPLICATED }

    private RedissonClient client(Mode mode, boolean wantsReplicas) {
        Config config = new Config().setSlavesSyncTimeout(200).setCheckLockSyncedSlaves(wantsReplicas);
        switch (mode) {
            case MASTER_SLAVE -> few(config.useMasterSlaveServers()).setMasterAddress(address(MASTER))
                .addSlaveAddress(address(REPLICA), address(OTHER_REPLICA));
            case REPLICATED -> few(config.useReplicatedServers()).setScanInterval(100)
                .addNodeAddress(address(MASTER), address(REPLICA), address(OTHER_REPLICA));
        }
        return client(config);
    }

    private <T extends BaseMasterSlaveServersConfig<T>> T few(T mode) {
        return tuned(mode, "app").setReadMode(ReadMode.MASTER).setMasterConnectionMinimumIdleSize(4)
            .setSlaveConnectionMinimumIdleSize(2);
    }

    private RLock lock(Mode mode) {
        RLock lock = client(mode, true).getLock("lock");
        loadScripts(lock);
        return lock;
    }

    /** The state as a client of the replica sees it. */
    private RLock afterFailover() {
        control.stop(MASTER);
        control.promote(REPLICA);
        return client("other", REPLICA).getLock("lock");
    }

    @ParameterizedTest
    @EnumSource
    void acquireWhoseReplyIsLostIsSentAgainAndCountsTwice(Mode mode) {
        RLock lock = lock(mode);
        try (Fault lost = control.closeAfterBytes(ACQUIRE.nth(1), 0)) {
            assertTrue(lock.tryLock());
        }
        assertEquals(List.of("2"), counts("lock"));
        lock.unlock();
        assertEquals(List.of("1"), counts("lock"));
    }

    @ParameterizedTest
    @EnumSource
    void acquireOnAConnectionThatStaysSilentCountsEachTimeItIsSentAndThrows(Mode mode) {
        RLock lock = lock(mode);
        try (Fault lost = control.dropReply(ACQUIRE.nth(1))) {
            assertThrows(RedisResponseTimeoutException.class, () -> lock.tryLock());
        }
        assertEquals(List.of("" + (1 + RETRIES)), counts("lock"));
    }

    @ParameterizedTest
    @EnumSource
    void unlockWhoseReplyIsLostIsSentAgainAndCountsOnce(Mode mode) {
        RLock lock = lock(mode);
        lock.lock();
        lock.lock();
        try (Fault lost = control.closeAfterBytes(UNLOCK.nth(1), 0); Gate again = control.gate(At.PRE, UNLOCK.nth(2))) {
            RFuture<Void> unlocked = lock.unlockAsync();
            again.await(1);
            again.release();
            unlocked.toCompletableFuture().join();
        }
        assertEquals(List.of("1"), counts("lock"));
    }

    @Test
    void unlockThatIsSentAgainWhenItsLatchIsOverThrows() throws Exception {
        RLock lock = lock(Mode.MASTER_SLAVE);
        lock.lock();
        try (Guard clock = control.stopClock(); Fault lost = control.closeAfterBytes(UNLOCK.nth(1), 0);
             Gate again = control.gate(At.PRE, UNLOCK.nth(2))) {
            RFuture<Void> unlocked = lock.unlockAsync();
            again.await(1);
            assertFalse(exists("lock"));
            control.advance(60_000);
            again.release();
            ExecutionException e = assertThrows(ExecutionException.class, () -> unlocked.toCompletableFuture().get(20, SECONDS));
            assertInstanceOf(IllegalMonitorStateException.class, e.getCause());
        }
    }

    @Test
    void lockThatNoReplicaConfirmsIsGivenBackAndThrown() {
        RLock lock = lock(Mode.MASTER_SLAVE);
        try (Guard none = control.acknowledge(MASTER, 0); Fault acquires = control.watch(ACQUIRE);
             Fault unlocks = control.watch(UNLOCK)) {
            RedisException e = assertThrows(RedisException.class, () -> lock.tryLock());
            assertTrue(e.getCause().getMessage().startsWith("None of slaves were synced"), e.getCause().getMessage());
            assertEquals(List.of(1 + RETRIES, 1 + RETRIES), List.of(acquires.hits(), unlocks.hits()));
        }
        assertFalse(exists("lock"));
    }

    @Test
    void lockThatOneOfTwoReplicasConfirmsIsHeld() {
        RLock lock = lock(Mode.MASTER_SLAVE);
        try (Guard one = control.acknowledge(MASTER, 1); Fault acquires = control.watch(ACQUIRE)) {
            assertTrue(lock.tryLock());
            assertEquals(1, acquires.hits());
        }
    }

    @Test
    void lockThatOneReplicaConfirmedIsLostWhenTheOtherTakesOver() {
        RLock mine = lock(Mode.MASTER_SLAVE);
        control.cutLink(REPLICA);
        assertTrue(mine.tryLock());
        assertEquals(1L, this.<Long>askNode(OTHER_REPLICA, "EXISTS", "lock"));
        assertTrue(afterFailover().tryLock());
    }

    @Test
    void lockThatNoReplicaHasIsGivenToAnotherAfterFailover() throws Exception {
        RLock mine = client(Mode.REPLICATED, false).getLock("lock");
        cutLinks();
        assertTrue(mine.tryLock());
        RLock theirs = afterFailover();
        assertTrue(theirs.tryLock());
        eventually("the first client follows", () -> isLockedSomewhere(mine));
        assertFalse(mine.isHeldByCurrentThread());
        assertThrows(IllegalMonitorStateException.class, mine::unlock);
        assertTrue(theirs.isHeldByCurrentThread());
    }

    @Test
    void unlockThatNoReplicaHasLeavesAGhostUntilItsLeaseEnds() {
        RLock mine = client(Mode.REPLICATED, false).getLock("lock");
        mine.lock();
        cutLinks();
        mine.unlock();
        try (Guard clock = control.stopClock()) {
            RLock theirs = afterFailover();
            assertFalse(theirs.tryLock());
            control.advance(30_001);
            assertTrue(theirs.tryLock());
        }
    }

    @Test
    void twoMastersBothGiveTheLockAndOneForgetsIt() {
        RLock mine = client("app", MASTER).getLock("lock");
        RLock theirs = client("other", REPLICA).getLock("lock");
        control.promote(REPLICA);
        assertTrue(mine.tryLock());
        assertTrue(theirs.tryLock());
        control.replicate(MASTER, REPLICA);
        assertFalse(mine.isHeldByCurrentThread());
        assertTrue(theirs.isHeldByCurrentThread());
    }

    /** The master is a replica for a moment. The retried request runs, but the client has taken the error for its result. */
    @Test
    void acquireThatIsRefusedOnceAsReadOnlyCountsEachTimeItIsSentAgainAndThrows() throws Exception {
        RLock lock = lock(Mode.MASTER_SLAVE);
        Task<Boolean> locked;
        try (Gate gate = control.gate(At.PRE, ACQUIRE)) {
            locked = spawn(() -> lock.tryLock());
            gate.await(1);
            control.promote(REPLICA);
            control.replicate(MASTER, REPLICA);
            gate.release();
            gate.await(1);
            control.promote(MASTER);
            replicate();
        }
        ExecutionException e = assertThrows(ExecutionException.class, () -> locked.get(20, SECONDS));
        assertInstanceOf(RedisReadonlyException.class, e.getCause());
        assertEquals(List.of("" + RETRIES), counts("lock"));
    }

    @ParameterizedTest
    @EnumSource
    void acquireThatIsRefusedOnceForAnotherReasonIsSentAgain(Mode mode) {
        RLock lock = lock(mode);
        try (Fault refused = control.refuse(ACQUIRE.nth(1), "LOADING Redis is loading the dataset in memory")) {
            assertTrue(lock.tryLock());
            assertEquals(1, refused.hits());
        }
        assertEquals(List.of("1"), counts("lock"));
    }

    @Test
    void clientFollowsTheMasterThatIsPromoted() throws Exception {
        RLock lock = lock(Mode.REPLICATED);
        control.promote(REPLICA);
        control.replicate(MASTER, REPLICA);
        control.replicate(OTHER_REPLICA, REPLICA);
        eventually("it is locked at the new master", () -> isAcquired(lock));
        assertEquals(1L, this.<Long>askNode(REPLICA, "EXISTS", "lock"));
    }

    private static boolean isAcquired(RLock lock) {
        try {
            return lock.tryLock();
        } catch (RedisException refused) {
            return false;
        }
    }

    private void cutLinks() {
        control.cutLink(REPLICA);
        control.cutLink(OTHER_REPLICA);
    }

    /** Returns whether the client finds the lock on the master that it knows. */
    private static boolean isLockedSomewhere(RLock lock) {
        try {
            return lock.isLocked();
        } catch (RedisException unreachable) {
            return false;
        }
    }
}
