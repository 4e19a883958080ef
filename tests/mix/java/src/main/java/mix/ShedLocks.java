package mix;

import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.sync.RedisCommands;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;

/**
 * Jobs of ShedLock, with and without a least time, now and then extended. ShedLock's core, with a provider that sends the commands that
 * its providers for Redis send: the older ones SET XX and DEL, the newer ones scripts that compare the owner.
 */
final class ShedLocks {

    private static final String DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    private static final String EXPIRE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

    private final RedisClient client;

    ShedLocks(int port) {
        client = RedisClient.create("redis://127.0.0.1:" + port);
    }

    AutoCloseable run(int seconds) throws InterruptedException {
        ThreadLocal<RedisCommands<String, String>> redis = ThreadLocal.withInitial(() -> client.connect().sync());
        Map<String, Mix.Use> uses = new HashMap<>();
        for (boolean compares : new boolean[] {false, true}) {
            for (int atLeastMs : new int[] {0, 20}) {
                String job = "job" + atLeastMs + (compares ? "-compares" : "");
                uses.put(job, random -> {
                    // Without a comparison only work that ends within its lease is safe.
                    boolean overruns = compares && random.nextInt(20) == 0;
                    Duration atMost = Duration.ofMillis(overruns ? 3 + atLeastMs : 2_000);
                    LockConfiguration work =
                        new LockConfiguration(Instant.now(), job, atMost, Duration.ofMillis(atLeastMs));
                    Optional<SimpleLock> lock = lock(redis.get(), work, compares);
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
        return client::shutdown;
    }

    private static Optional<SimpleLock> lock(RedisCommands<String, String> redis, LockConfiguration work, boolean compares) {
        String key = "job-lock:default:" + work.getName();
        String value = "ADDED:" + Instant.now() + "@localhost" + (compares ? ":" + UUID.randomUUID() : "");
        String reply = redis.set(key, value, SetArgs.Builder.nx().px(work.getLockAtMostFor().toMillis()));
        return reply == null ? Optional.empty() : Optional.of(new Held(redis, work, key, value, compares));
    }

    private static final class Held extends AbstractSimpleLock {

        private final RedisCommands<String, String> redis;
        private final String key;
        private final String value;
        private final boolean compares;

        Held(RedisCommands<String, String> redis, LockConfiguration work, String key, String value, boolean compares) {
            super(work);
            this.redis = redis;
            this.key = key;
            this.value = value;
            this.compares = compares;
        }

        @Override
        protected void doUnlock() {
            long keepMs = Duration.between(Instant.now(), lockConfiguration.getLockAtLeastUntil()).toMillis();
            if (keepMs > 0) {
                keep(keepMs);
            } else if (compares) {
                redis.eval(DELETE, ScriptOutputType.INTEGER, new String[] {key}, value);
            } else {
                redis.del(key);
            }
        }

        @Override
        protected Optional<SimpleLock> doExtend(LockConfiguration work) {
            boolean kept = keep(work.getLockAtMostFor().toMillis());
            return kept ? Optional.of(new Held(redis, work, key, value, compares)) : Optional.empty();
        }

        private boolean keep(long ms) {
            if (compares) {
                Long reply = redis.eval(EXPIRE, ScriptOutputType.INTEGER, new String[] {key}, value, String.valueOf(ms));
                return reply == 1;
            }
            return redis.set(key, value, SetArgs.Builder.xx().px(ms)) != null;
        }
    }
}
