package redlatch;

import org.redisson.Config;
import org.redisson.Redisson;
import org.redisson.RedissonClient;

/** Creates clients of Redisson before 2.3: another package, addresses without a scheme, locks stored as JSON. */
final class Client implements AutoCloseable {

    final RedissonClient redisson;

    Client(int port) {
        Config config = new Config();
        config.useSingleServer().setAddress("127.0.0.1:" + port);
        redisson = Redisson.create(config);
    }

    @Override
    public void close() {
        redisson.shutdown();
    }
}
