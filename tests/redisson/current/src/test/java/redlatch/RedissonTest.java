package redlatch;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redlatch.harness.Resp;
import redlatch.harness.Server;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;

/** Base class: one server and two clients per class; an empty database and any number of further clients per test. */
abstract class RedissonTest {

    private final List<RedissonClient> more = new CopyOnWriteArrayList<>();
    Settings settings = Settings.DEFAULT;
    Server server;
    RedissonClient redisson;
    RedissonClient other;

    @BeforeAll
    void start() {
        server = Server.start(settings.serverOptions());
        redisson = Redisson.create(config());
        other = Redisson.create(config());
    }

    @AfterAll
    void stop() {
        try (Server last = server) {
            Stream.of(redisson, other).filter(Objects::nonNull).forEach(RedissonClient::shutdown);
        }
    }

    @BeforeEach
    void flush() {
        ask("FLUSHALL");
    }

    @AfterEach
    void shutdownMoreClients() {
        more.parallelStream().forEach(RedissonClient::shutdown);  // each shutdown waits for blocked commands
        more.clear();
    }

    Config config() {
        return settings.config(server.port());
    }

    /** Creates another client, to be shut down at the end of the test. */
    RedissonClient client(Config config) {
        RedissonClient client = Redisson.create(config);
        more.add(client);
        return client;
    }

    RedissonClient client() {
        return client(config());
    }

    /** Opens a connection that bypasses Redisson. */
    Resp connect() {
        Resp resp = server.connect();
        if (settings.password() != null) {
            resp.call("AUTH", settings.password());
        }
        resp.call("SELECT", settings.database());
        return resp;
    }

    <T> T ask(Object... command) {
        try (Resp resp = connect()) {
            return resp.call(command);
        }
    }

    List<String> channels() {
        return ask("PUBSUB", "CHANNELS");
    }

    long ttlMs(String key) {
        return this.<Long>ask("PTTL", key);
    }
}
