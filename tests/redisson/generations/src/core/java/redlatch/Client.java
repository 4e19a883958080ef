package redlatch;

import org.redisson.Config;
import org.redisson.Redisson;
import org.redisson.RedissonClient;

/** A Redisson from before 2.3: another package, an address without scheme, locks that are JSON. */
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
