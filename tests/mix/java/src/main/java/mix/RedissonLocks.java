package mix;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The locks of Redisson, used by two clients; RedLock on three nodes. */
final class RedissonLocks {

    private final RedissonClient[] clients = new RedissonClient[2];
    private final RedissonClient[] nodes;

    RedissonLocks(int[] ports) {
        for (int i = 0; i < clients.length; i++) {
            clients[i] = connect(ports[0]);
        }
        nodes = new RedissonClient[ports.length];
        for (int i = 0; i < ports.length; i++) {
            nodes[i] = connect(ports[i]);
        }
    }

    static RedissonClient connect(int port) {
        Config config = new Config();
        // The watchdog has something to do while a lock is held for 300 ms.
        config.setLockWatchdogTimeout(600);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port)
            .setConnectionPoolSize(8).setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1);
        return Redisson.create(config);
    }

    AutoCloseable run(int seconds) throws InterruptedException {
        Map<String, Mix.Use> uses = new HashMap<>();
        uses.put("lock", random -> use(any(random).getLock("mix:lock"), random));
        uses.put("fair", random -> use(any(random).getFairLock("mix:fair"), random));
        uses.put("spin", random -> use(any(random).getSpinLock("mix:spin"), random));
        uses.put("fenced", random -> use(any(random).getFencedLock("mix:fenced"), random));
        uses.put("read", random -> use(any(random).getReadWriteLock("mix:rw").readLock(), random));
        uses.put("write", random -> use(any(random).getReadWriteLock("mix:rw").writeLock(), random));
        uses.put("multi", random -> {
            RedissonClient client = any(random);
            return use(new RedissonMultiLock(client.getLock("mix:multi:1"), client.getLock("mix:multi:2")), random);
        });
        uses.put("redlock", random -> {
            RLock[] locks = new RLock[nodes.length];
            for (int i = 0; i < nodes.length; i++) {
                locks[i] = nodes[i].getLock("mix:redlock");
            }
            return use(new RedissonRedLock(locks), random);
        });
        clients[0].getSemaphore("mix:semaphore").trySetPermits(3);
        clients[0].getPermitExpirableSemaphore("mix:permit").trySetPermits(3);
        uses.put("semaphore", random -> {
            RSemaphore semaphore = any(random).getSemaphore("mix:semaphore");
            boolean granted = semaphore.tryAcquire(1, java.time.Duration.ofMillis(50));
            if (granted) {
                Thread.sleep(random.nextInt(4));
                semaphore.release();
            }
            return granted;
        });
        uses.put("permit", random -> {
            RPermitExpirableSemaphore semaphore = any(random).getPermitExpirableSemaphore("mix:permit");
            String id = semaphore.tryAcquire(50, 500, MILLISECONDS);
            if (id != null) {
                Thread.sleep(random.nextInt(4));
                semaphore.tryRelease(id);
            }
            return id != null;
        });
        Mix.run("redisson", seconds, uses);
        return () -> {
            for (RedissonClient client : clients) {
                client.shutdown();
            }
            for (RedissonClient node : nodes) {
                node.shutdown();
            }
        };
    }

    private RedissonClient any(Random random) {
        return clients[random.nextInt(clients.length)];
    }

    private static boolean use(RLock lock, Random random) throws InterruptedException {
        int way = random.nextInt(20);
        // With a lease, which now and then ends before the work does; or with the watchdog.
        long leaseMs = way == 0 ? 3 : way < 10 ? 2_000 : -1;
        if (way == 19) {
            if (!lock.tryLock()) {
                return false;
            }
        } else if (!lock.tryLock(100, leaseMs, MILLISECONDS)) {
            return false;
        }
        try {
            boolean again = way % 5 == 1 && lock.tryLock();
            Thread.sleep(way == 18 ? 300 : random.nextInt(6));
            if (again) {
                lock.unlock();
            }
        } finally {
            release(lock);
        }
        return true;
    }

    private static void release(RLock lock) {
        try {
            lock.unlock();
        } catch (IllegalMonitorStateException e) {
            // The lease has ended.
        }
    }
}
