package redlatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import redlatch.harness.Control.Guard;

import java.util.List;

import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** A master with two replicas, watched by three sentinels, that stops. */
class SentinelTest extends FaultTest {

    private static final int MASTER = 0;
    private static final List<Integer> SENTINELS = List.of(3, 4, 5);

    SentinelTest() {
        super(6, SHORT_MS, "--topology", "sentinel:1x2+3");
    }

    @BeforeEach
    void notice() {
        SENTINELS.forEach(node -> askNode(node, "SENTINEL", "SET", "mymaster", "down-after-milliseconds", 500));
    }

    private RedissonClient sentinelClient(String name) {
        // Without it, a lock that no replica has seen is an error of the client.
        Config config = new Config().setCheckLockSyncedSlaves(false);
        tuned(config.useSentinelServers(), name).setMasterName("mymaster").setReadMode(ReadMode.MASTER).setScanInterval(200)
            .setRetryAttempts(15).addSentinelAddress(address(3), address(4), address(5))
            .setMasterConnectionMinimumIdleSize(2).setSlaveConnectionMinimumIdleSize(1);
        return client(config);
    }

    /** Returns the port of the master that a sentinel names. */
    private int masterPort() {
        return Integer.parseInt(this.<List<String>>askNode(4, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster").get(1));
    }

    private int master() {
        return List.of(0, 1, 2).stream().filter(node -> server.port(node) == masterPort()).findFirst().orElseThrow();
    }

    @Test
    void aLockIsHeldAcrossAFailover() throws Exception {
        RLock lock = sentinelClient("holder").getLock("lock");
        lock.lock();
        assertEquals(List.of("1"), askNode(MASTER, "HVALS", "lock"));
        try (Guard stopped = control.stop(MASTER)) {
            eventually("a replica leads", () -> masterPort() != server.port(MASTER));
            assertFalse(elsewhere(() -> sentinelClient("other").getLock("lock").tryLock()));
            lock.unlock();
            assertEquals(List.of(), askNode(master(), "HVALS", "lock"));
        }
    }

    @Test
    void aLockThatNoReplicaSawIsGrantedTwice() throws Exception {
        RLock lock = sentinelClient("holder").getLock("lock");
        loadScripts(lock);
        control.cutLink(1);
        control.cutLink(2);
        lock.lock();
        try (Guard stopped = control.stop(MASTER)) {
            eventually("a replica leads", () -> masterPort() != server.port(MASTER));
            assertTrue(elsewhere(() -> sentinelClient("other").getLock("lock").tryLock()));
        }
    }
}
