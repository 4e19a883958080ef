package redlatch;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import redlatch.harness.Resp;
import redlatch.harness.Server;

import java.util.List;

/** Two clients of one server. Tests say {@code var} for a lock: the interfaces moved between releases. */
abstract class GenerationTest {

    private Server server;
    Client a;
    Client b;

    @BeforeAll
    void start() {
        server = Server.start();
        a = new Client(server.port());
        b = new Client(server.port());
    }

    @AfterAll
    void stop() {
        try (Server last = server; Client second = b; Client first = a) {
            // closes each client, even if closing another fails
        }
    }

    @BeforeEach
    void flush() {
        try (Resp resp = server.connect()) {
            resp.call("FLUSHALL");
        }
    }

    List<String> channels() {
        try (Resp resp = server.connect()) {
            return resp.call("PUBSUB", "CHANNELS");
        }
    }

    long ttlMs(String key) {
        try (Resp resp = server.connect()) {
            return resp.<Long>call("PTTL", key);
        }
    }
}
