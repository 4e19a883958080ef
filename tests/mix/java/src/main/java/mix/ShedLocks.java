package mix;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Jobs of ShedLock by its provider for Spring Data Redis, with and without a least time, now and then extended: with safe updates, which
 * compare the owner, and without, as its older releases do.
 */
final class ShedLocks {

    private final LettuceConnectionFactory factory;

    ShedLocks(int port) {
        factory = new LettuceConnectionFactory("127.0.0.1", port);
        factory.start();
    }

    AutoCloseable run(int seconds) throws InterruptedException {
        Map<String, Mix.Use> uses = new HashMap<>();
        for (boolean compares : new boolean[] {false, true}) {
            LockProvider provider = new RedisLockProvider.Builder(factory).environment("mix").safeUpdate(compares).build();
            for (int atLeastMs : new int[] {0, 20}) {
                String job = "job" + atLeastMs + (compares ? "-compares" : "");
                uses.put(job, random -> {
                    // Without a comparison only work that ends within its lease is safe.
                    boolean overruns = compares && random.nextInt(20) == 0;
                    Duration atMost = Duration.ofMillis(overruns ? 3 + atLeastMs : 2_000);
                    LockConfiguration work =
                        new LockConfiguration(Instant.now(), job, atMost, Duration.ofMillis(atLeastMs));
                    Optional<SimpleLock> lock = provider.lock(work);
                    if (lock.isEmpty()) {
                        Thread.sleep(1);
                        return false;
                    }
                    Thread.sleep(random.nextInt(6));
                    if (!overruns && random.nextInt(4) == 0) {
                        lock = lock.get().extend(Duration.ofMillis(2_000), Duration.ofMillis(atLeastMs));
                    }
                    lock.ifPresent(SimpleLock::unlock);
                    return true;
                });
            }
        }
        Mix.run("shedlock", seconds, uses);
        return factory::destroy;
    }
}
