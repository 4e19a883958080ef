package contracts;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RBatch;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** The owners are clients of their own; their locks are RLock. */
final class RedissonSubject implements Subject {

    private final String shape;
    private final String[] nodes;
    private final Map<String, RedissonClient> owners = new HashMap<>();

    RedissonSubject(String shape, int[] ports) {
        this.shape = shape;
        nodes = Arrays.stream(ports).mapToObj(port -> "redis://127.0.0.1:" + port).toArray(String[]::new);
    }

    private RedissonClient owner(String name) {
        return owners.computeIfAbsent(name, unused -> {
            Config config = new Config();
            switch (shape) {
                case "cluster" -> config.useClusterServers().addNodeAddress(nodes).setScanInterval(500);
                case "sentinel" -> config.useSentinelServers().setMasterName("mymaster").addSentinelAddress(nodes).setScanInterval(500);
                case "replicas" -> config.useReplicatedServers().addNodeAddress(nodes).setScanInterval(500);
                default -> config.useSingleServer().setAddress(nodes[0]);
            }
            return Redisson.create(config);
        });
    }

    @Override
    public void open() {
        owner("one");
        owner("two");
    }

    @Override
    public void clear() {
        owner("one").getKeys().delete(KEPT, LOCK, COUNTER);
    }

    @Override
    public boolean acquire(String lock, String owner) throws InterruptedException {
        return owner(owner).getLock(lock).tryLock(0, 60, TimeUnit.SECONDS);
    }

    @Override
    public boolean release(String lock, String owner) {
        try {
            owner(owner).getLock(lock).unlock();
            return true;
        } catch (IllegalMonitorStateException held) {
            return false;
        }
    }

    @Override
    public void subscribe(Consumer<String> listener) {
        owner("two").getTopic(CHANNEL, StringCodec.INSTANCE).addListener(String.class, (channel, message) -> listener.accept(message));
    }

    @Override
    public void publish(String message) {
        owner("one").getTopic(CHANNEL, StringCodec.INSTANCE).publish(message);
    }

    @Override
    public List<?> count() {
        RBatch batch = owner("one").createBatch(BatchOptions.defaults());
        for (int i = 0; i < 100; i++) {
            batch.getAtomicLong(COUNTER).incrementAndGetAsync();
        }
        return batch.execute().getResponses();
    }

    @Override
    public void flushScripts() {
        owner("one").getScript().scriptFlush();
    }

    @Override
    public void write() {
        owner("one").getAtomicLong(COUNTER).set(1);
        owner("two").getAtomicLong(COUNTER).set(1);
    }
}
