package redlatch;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.BaseConfig;
import org.redisson.config.Config;
import redlatch.harness.Control;
import redlatch.harness.Resp;
import redlatch.harness.Server;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;

/** Base class: one server with several nodes per class; empty data, no faults and new clients for each test. */
abstract class FaultTest {

    /** How long Redisson waits for a reply: SHORT where a test loses one, LONG where it holds one. */
    static final int SHORT_MS = 1_000;
    static final int LONG_MS = 15_000;
    static final int SUBSCRIPTION_TIMEOUT_MS = 1_500;
    /** Enough attempts for a closed connection to be reopened. */
    static final int RETRIES = 3;
    private static final Duration RETRY_DELAY = Duration.ofMillis(300);

    private final int nodes;
    private final int timeoutMs;
    private final String[] options;
    private final List<RedissonClient> clients = new CopyOnWriteArrayList<>();
    Server server;
    Control control;

    FaultTest(int nodes, int timeoutMs, String... options) {
        this.nodes = nodes;
        this.timeoutMs = timeoutMs;
        this.options = options;
    }

    @BeforeAll
    void start() {
        server = Server.start(nodes, options);
        control = new Control(server.port());
    }

    @AfterAll
    void stop() {
        try (Server last = server; Control first = control) {
            Objects.requireNonNull(last);
        }
    }

    @BeforeEach
    void reset() {
        control.reset();
    }

    @AfterEach
    void shutdownClients() {
        control.reset();  // releases everything that is still held
        clients.parallelStream().forEach(RedissonClient::shutdown);
        clients.clear();
    }

    /** Creates a client of one node; its connections have this name. */
    RedissonClient client(String name, int node) {
        Config config = new Config();
        tuned(config.useSingleServer(), name).setAddress(address(node)).setConnectionMinimumIdleSize(8);
        return client(config);
    }

    RedissonClient client(String name) {
        return client(name, 0);
    }

    /** Registers a client, to be shut down at the end of the test. */
    RedissonClient client(Config config) {
        RedissonClient client = Redisson.create(config);
        clients.add(client);
        return client;
    }

    <T extends BaseConfig<T>> T tuned(T mode, String name) {
        return mode.setClientName(name).setTimeout(timeoutMs).setSubscriptionTimeout(SUBSCRIPTION_TIMEOUT_MS)
            .setRetryAttempts(RETRIES).setRetryDelay(attempt -> RETRY_DELAY);
    }

    String address(int node) {
        return "redis://127.0.0.1:" + server.port(node);
    }

    <T> T askNode(int node, Object... command) {
        try (Resp resp = new Resp(server.port(node))) {
            return resp.call(command);
        }
    }

    <T> T ask(Object... command) {
        return askNode(0, command);
    }

    boolean exists(String key) {
        return this.<Long>ask("EXISTS", key) == 1;
    }

    /** Returns the hold count of each owner of the lock. */
    List<String> counts(String lock) {
        return ask("HVALS", lock);
    }

    /** Returns how far a client's clock is ahead of the server's, in ms. */
    long skewMs(String client) {
        return control.skews().stream().filter(skew -> skew.get(0).equals(client))
            .map(skew -> (Long) skew.get(1)).findFirst().orElseThrow();
    }

    /** Loads the lock scripts: a script that the server does not know is sent twice, which would disturb the counts of a test. */
    static void loadScripts(RLock lock) {
        lock.lock();
        lock.unlock();
    }
}
