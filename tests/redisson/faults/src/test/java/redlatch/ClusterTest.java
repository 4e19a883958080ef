package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redlatch.harness.Control.Guard;

import java.util.List;

import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** A cluster of three masters with a replica each, whose masters stop. */
class ClusterTest extends FaultTest {

    /** The master of the slot of {@code lock}, and its replica. */
    private static final int MASTER = 1;
    private static final int REPLICA = 4;

    ClusterTest() {
        super(6, SHORT_MS, "--topology", "cluster:3x1", "--cluster-node-timeout", "500");
    }

    private RedissonClient clusterClient(String name) {
        // Without it, a lock that no replica has seen is an error of the client.
        Config config = new Config().setCheckLockSyncedSlaves(false);
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
}
