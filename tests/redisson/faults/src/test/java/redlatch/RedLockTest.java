package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redlatch.harness.Concurrently.Task;
import redlatch.harness.Control.At;
import redlatch.harness.Control.Fault;
import redlatch.harness.Control.Gate;
import redlatch.harness.Control.Guard;
import redlatch.harness.Control.Match;

import java.util.List;
import java.util.stream.IntStream;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;
import static redlatch.harness.Control.Match.*;

/** Three independent masters, and a lock that needs two of them. */
class RedLockTest extends FaultTest {

    private static final int NODES = 3;
    private static final int LEASE_MS = 10_000;
    private static final int WAIT_MS = 3_000;

    /** The last step of an acquire with a wait time, on each node: until then the lease is twice the wait time. */
    private static final Match FINAL_EXPIRE = command("evalsha").client("first").and("ARGV", 1, LEASE_MS);

    private RLock mine;
    private RLock theirs;

    RedLockTest() {
        super(NODES, LONG_MS);
    }

    @BeforeEach
    @SuppressWarnings("deprecation")
    void connect() {
        control.stopClock();
        List<RedissonClient> first = clients("first", LONG_MS);
        List<RedissonClient> second = clients("second", LONG_MS);
        mine = first.get(0).getRedLock(locks(first));
        theirs = second.get(0).getRedLock(locks(second));
    }

    /** One lock on each node. */
    private List<RedissonClient> clients(String name, int timeoutMs) {
        return IntStream.range(0, NODES).mapToObj(node -> {
            Config config = new Config();
            tuned(config.useSingleServer(), name).setAddress(address(node)).setTimeout(timeoutMs)
                .setConnectionMinimumIdleSize(4);
            return client(config);
        }).toList();
    }

    private static RLock[] locks(List<RedissonClient> clients) {
        return clients.stream().map(client -> client.getLock("lock")).toArray(RLock[]::new);
    }

    private List<Long> held() {
        return IntStream.range(0, NODES).mapToObj(node -> this.<Long>askNode(node, "HLEN", "lock")).toList();
    }

    private List<Long> ttlsMs() {
        return IntStream.range(0, NODES).mapToObj(node -> this.<Long>askNode(node, "PTTL", "lock")).toList();
    }

    /** The client does not check the elapsed time. It asks the nodes one after the other, so the gate holds only the last reply. */
    @Test
    void repliesThatComeAfterTheLeaseAreBelieved() throws Exception {
        try (Gate gate = control.gate(At.POST, script("rlock.acquire").client("first").node(2))) {
            Task<Boolean> locked = spawn(() -> mine.tryLock(-1, LEASE_MS, MILLISECONDS));
            gate.await(1);
            control.advance(LEASE_MS + 1);
            assertTrue(theirs.tryLock(-1, LEASE_MS, MILLISECONDS));
            gate.release();
            assertTrue(locked.get(20, SECONDS));
        }
        assertEquals(List.of(1L, 1L, 1L), held());
    }

    @Test
    void finalExpireThatFindsNothingIsBelieved() throws Exception {
        Task<Boolean> locked;
        try (Gate gate = control.gate(At.PRE, FINAL_EXPIRE)) {
            locked = spawn(() -> mine.tryLock(WAIT_MS, LEASE_MS, MILLISECONDS));
            gate.await(1);
            assertEquals(List.of(2L * WAIT_MS, 2L * WAIT_MS, 2L * WAIT_MS), ttlsMs());
            control.advance(2 * WAIT_MS + 1);
        }
        assertTrue(locked.get(20, SECONDS));
        assertEquals(List.of(0L, 0L, 0L), held());
    }

    @Test
    void finalExpireExtendsTheLockOfAnother() throws Exception {
        Task<Boolean> locked;
        try (Gate gate = control.gate(At.PRE, FINAL_EXPIRE)) {
            locked = spawn(() -> mine.tryLock(WAIT_MS, LEASE_MS, MILLISECONDS));
            gate.await(1);
            control.advance(2 * WAIT_MS + 1);
            assertTrue(theirs.tryLock(-1, 100, MILLISECONDS));
            assertEquals(List.of(100L, 100L, 100L), ttlsMs());
        }
        assertTrue(locked.get(20, SECONDS));
        assertEquals(List.of((long) LEASE_MS, (long) LEASE_MS, (long) LEASE_MS), ttlsMs());
        assertEquals(List.of(1L, 1L, 1L), held());
    }

    @Test
    void clockThatJumpsGivesTwoMajorities() throws Exception {
        twoMajorities(() -> control.jump(1, LEASE_MS + 1));
    }

    @Test
    void restartWithoutDataGivesTwoMajorities() throws Exception {
        twoMajorities(() -> control.stopAndWipe(1).close());
    }

    /** The first client gets nodes 0 and 1, then node 1 loses the key, and the second client gets nodes 1 and 2. */
    private void twoMajorities(Runnable forget) throws Exception {
        try (Fault first = control.refuse(script("rlock.acquire").client("first").node(2), "ERR out of reach");
             Fault second = control.refuse(script("rlock.acquire").client("second").node(0), "ERR out of reach")) {
            assertTrue(mine.tryLock(-1, LEASE_MS, MILLISECONDS));
            assertEquals(List.of(1L, 1L, 0L), held());
            assertFalse(theirs.tryLock(-1, LEASE_MS, MILLISECONDS));
            eventually("what it got is given back", () -> held().equals(List.of(1L, 1L, 0L)));
            forget.run();
            assertTrue(theirs.tryLock(-1, LEASE_MS, MILLISECONDS));
            assertEquals(List.of(1L, 1L, 1L), held());
        }
    }

    @Test
    void replyOfOneNodeThatIsLostIsMadeUpForByAnUnlock() throws Exception {
        RLock all = multiLock();
        try (Fault lost = control.dropReply(script("rlock.acquire").node(1).nth(1))) {
            assertFalse(all.tryLock());
            assertEquals(1, lost.hits());
        }
        eventually("nothing is locked", () -> held().equals(List.of(0L, 0L, 0L)));
    }

    @Test
    void acquireOfOneNodeThatFailsBeforeItsLeaseLeavesItLockedForEver() throws Exception {
        RLock all = multiLock();
        try (Fault broken = control.failCall(script("rlock.acquire").node(1).nth(1), 3)) {
            assertFalse(all.tryLock());
        }
        eventually("the others are given back", () -> held().equals(List.of(0L, 1L, 0L)));
        assertEquals(-1L, this.<Long>askNode(1, "PTTL", "lock"));
    }

    private RLock multiLock() {
        List<RedissonClient> clients = clients("impatient", SHORT_MS);
        clients.forEach(client -> loadScripts(client.getLock("lock")));
        return clients.get(0).getMultiLock(locks(clients));
    }
}
