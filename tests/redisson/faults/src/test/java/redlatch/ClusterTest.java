package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redlatch.harness.Control.Guard;

import java.util.List;

import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** A cluster of three masters with a replica each, whose masters stop and whose slots move. */
class ClusterTest extends FaultTest {

    /** The master of the slot of {@code lock}, and its replica. */
    private static final int MASTER = 1;
    private static final int REPLICA = 4;

    ClusterTest() {
        super(6, SHORT_MS, "--topology", "cluster:3x1", "--cluster-node-timeout", "500");
    }

    private RedissonClient clusterClient(String name) {
        Config config = new Config();
        tuned(config.useClusterServers(), name).setScanInterval(200).setRetryAttempts(15)
            .addNodeAddress(address(0), address(3)).setMasterConnectionMinimumIdleSize(2).setSlaveConnectionMinimumIdleSize(1);
        return client(config);
    }

    @Test
    void aLockIsHeldAcrossAFailover() throws Exception {
        RLock lock = clusterClient("holder").getLock("lock");
        lock.lock();
        assertEquals(List.of("1"), askNode(MASTER, "HVALS", "lock"));
        try (Guard stopped = control.stop(MASTER)) {
            eventually("the replica leads", () -> this.<List<Object>>askNode(REPLICA, "ROLE").get(0).equals("master"));
            assertFalse(elsewhere(() -> clusterClient("other").getLock("lock").tryLock()));
            lock.unlock();
            assertEquals(List.of(), askNode(REPLICA, "HVALS", "lock"));
        }
    }

    @Test
    void aLockThatTheReplicaNeverSawIsGrantedTwice() throws Exception {
        RLock lock = clusterClient("holder").getLock("lock");
        loadScripts(lock);
        control.call("SIM.LINK", "CUT", MASTER, REPLICA, "ONEWAY");
        lock.lock();
        try (Guard stopped = control.stop(MASTER)) {
            eventually("the replica leads", () -> this.<List<Object>>askNode(REPLICA, "ROLE").get(0).equals("master"));
            assertTrue(elsewhere(() -> clusterClient("other").getLock("lock").tryLock()));
            assertTrue(lock.isLocked());
        }
    }

    @Test
    void aLockFollowsItsSlot() {
        RLock lock = clusterClient("holder").getLock("lock");
        lock.lock();
        Long slot = askNode(MASTER, "CLUSTER", "KEYSLOT", "lock");
        String from = askNode(MASTER, "CLUSTER", "MYID");
        String to = askNode(2, "CLUSTER", "MYID");
        askNode(2, "CLUSTER", "SETSLOT", slot, "IMPORTING", from);
        askNode(MASTER, "CLUSTER", "SETSLOT", slot, "MIGRATING", to);
        askNode(MASTER, "MIGRATE", "127.0.0.1", server.port(2), "lock", 0, 5000);
        assertFalse(elsewhere(() -> clusterClient("other").getLock("lock").tryLock()));
        askNode(2, "CLUSTER", "SETSLOT", slot, "NODE", to);
        askNode(MASTER, "CLUSTER", "SETSLOT", slot, "NODE", to);
        assertEquals(List.of("1"), askNode(2, "HVALS", "lock"));
        lock.unlock();
        assertEquals(List.of(), askNode(2, "HVALS", "lock"));
    }
}
