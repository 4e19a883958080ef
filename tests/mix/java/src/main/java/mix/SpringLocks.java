package mix;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;

/** The lock registry of Spring Integration, of both types. */
final class SpringLocks {

    private final LettuceConnectionFactory factory;

    SpringLocks(int port) {
        factory = new LettuceConnectionFactory("127.0.0.1", port);
        factory.start();
    }

    AutoCloseable run(int seconds) throws InterruptedException {
        Map<String, Mix.Use> uses = new HashMap<>();
        for (RedisLockRegistry.RedisLockType type : RedisLockRegistry.RedisLockType.values()) {
            RedisLockRegistry[] registries = new RedisLockRegistry[2];
            for (int i = 0; i < registries.length; i++) {
                registries[i] = new RedisLockRegistry(factory, "mix:" + type, 2_000);
                registries[i].setRedisLockType(type);
            }
            uses.put(type.toString(), random -> {
                Lock lock = registries[random.nextInt(registries.length)].obtain("stock");
                if (!lock.tryLock(100, MILLISECONDS)) {
                    return false;
                }
                boolean again = random.nextInt(4) == 0 && lock.tryLock();
                Thread.sleep(random.nextInt(6));
                if (again) {
                    lock.unlock();
                }
                lock.unlock();
                return true;
            });
        }
        Mix.run("spring", seconds, uses);
        return factory::destroy;
    }
}
