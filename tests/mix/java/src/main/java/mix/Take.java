package mix;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RLock;

/** Takes a lock of Redisson for half a minute, and leaves without a release. */
final class Take {

    private Take() {
    }

    static AutoCloseable run(int port) throws InterruptedException {
        RLock lock = RedissonLocks.connect(port).getLock("orders");
        System.out.println("redisson orders: granted " + (lock.tryLock(0, 30_000, MILLISECONDS) ? 1 : 0));
        return () -> { };
    }
}
