package redlatch;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redlatch.harness.Proxy;
import redlatch.harness.Resp;
import redlatch.harness.Server;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Three independent masters, each behind a proxy that can be cut. */
class MultiLockTest {

    private static final int NODES = 3;

    private Server server;
    private final List<Proxy> wires = new ArrayList<>();
    private final List<RedissonClient> clients = new ArrayList<>();

    @BeforeEach
    void start() {
        server = Server.start(NODES);
        for (int node = 0; node < NODES; node++) {
            Proxy wire = new Proxy(server.port(node));
            wires.add(wire);
            Config config = Settings.DEFAULT.config(wire.port());
            config.useSingleServer().setTimeout(500).setRetryAttempts(1)
                .setRetryDelay(attempt -> Duration.ofMillis(50));
            clients.add(Redisson.create(config));
        }
    }

    @AfterEach
    void stop() {
        try (Server last = server) {
            clients.forEach(RedissonClient::shutdown);
            clients.clear();
            wires.forEach(Proxy::cut);
            wires.clear();
        }
    }

    @Test
    void nodesAreIndependent() {
        clients.get(0).getLock("lock").lock();
        assertEquals(List.of(1L, 0L, 0L), held());
        assertTrue(clients.get(1).getLock("lock").tryLock());
        assertEquals(List.of(1L, 1L, 0L), held());
    }

    @Test
    void multiLockHoldsAllOrNone() throws Exception {
        RLock all = clients.get(0).getMultiLock(locks());
        all.lock();
        assertEquals(List.of(1L, 1L, 1L), held());
        elsewhere(() -> assertFalse(clients.get(0).getMultiLock(locks()).tryLock()));
        all.unlock();
        assertEquals(List.of(0L, 0L, 0L), held());

        RLock one = clients.get(2).getLock("lock");
        elsewhere(() -> one.lock());
        assertFalse(all.tryLock());
        eventually("the others are given back", () -> held().equals(List.of(0L, 0L, 1L)));
    }

    @Test
    void multiLockOfOneClientWithALease() throws Exception {
        RedissonClient client = clients.get(0);
        RLock all = client.getMultiLock(client.getLock("a"), client.getLock("b"), client.getFairLock("c"));
        assertTrue(all.tryLock(1, 20, SECONDS));
        try (Resp resp = new Resp(server.port())) {
            for (String name : List.of("a", "b", "c")) {
                long ttlMs = resp.<Long>call("PTTL", name);
                assertTrue(18_000 < ttlMs && ttlMs <= 20_000, name + ": " + ttlMs + " ms");
            }
        }
        all.unlock();
        assertFalse(client.getLock("a").isLocked());
    }

    @Test
    void redLockHoldsWithOneNodeDown() throws Exception {
        wires.get(1).cut();
        RLock red = clients.get(0).getRedLock(locks());
        assertTrue(red.tryLock(15, 30, SECONDS));
        assertEquals(List.of(1L, 0L, 1L), held());
        elsewhere(() -> assertFalse(clients.get(0).getRedLock(locks()).tryLock()));
        red.unlock();
        eventually("the living nodes are free", () -> held().equals(List.of(0L, 0L, 0L)));
    }

    @Test
    void redLockFailsWithTwoNodesDown() throws Exception {
        wires.get(0).cut();
        wires.get(1).cut();
        assertFalse(clients.get(2).getRedLock(locks()).tryLock(3, 30, SECONDS));
        eventually("the living node is free", () -> held().equals(List.of(0L, 0L, 0L)));
    }

    private RLock[] locks() {
        return clients.stream().map(client -> client.getLock("lock")).toArray(RLock[]::new);
    }

    /** Returns for each node whether the lock exists there. */
    private List<Long> held() {
        List<Long> held = new ArrayList<>();
        for (int node = 0; node < NODES; node++) {
            try (Resp resp = new Resp(server.port(node))) {
                held.add(resp.call("EXISTS", "lock"));
            }
        }
        return held;
    }
}
