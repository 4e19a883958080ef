package redlatch;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** A Redisson with interfaces in {@code org.redisson.api}: 2.3 and later. */
final class Client implements AutoCloseable {

    static final int LEASE_MS = 2_000;

    final RedissonClient redisson;

    Client(int port) {
        Config config = new Config();
        config.setLockWatchdogTimeout(LEASE_MS);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        synchronized (Client.class) {  // in 2.15 the static initializers fail if two clients start at once
            redisson = Redisson.create(config);
        }
    }

    @Override
    public void close() {
        redisson.shutdown();
    }
}
