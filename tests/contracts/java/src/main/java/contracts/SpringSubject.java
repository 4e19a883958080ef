package contracts;

import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.RedisStaticMasterReplicaConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.redis.util.RedisLockRegistry;

/** The owners are lock registries of Spring Integration, on Spring Data's connections by Lettuce. */
final class SpringSubject implements Subject {

    private final String shape;
    private final int[] ports;
    private final Map<String, RedisLockRegistry> owners = new HashMap<>();
    private StringRedisTemplate template;

    SpringSubject(String shape, int[] ports) {
        this.shape = shape;
        this.ports = ports;
    }

    @Override
    public void open() {
        List<String> nodes = Arrays.stream(ports).mapToObj(port -> "127.0.0.1:" + port).toList();
        RedisConfiguration servers = switch (shape) {
            case "cluster" -> new RedisClusterConfiguration(nodes);
            case "sentinel" -> new RedisSentinelConfiguration("mymaster", Set.copyOf(nodes));
            case "replicas" -> replicas();
            default -> new RedisStandaloneConfiguration("127.0.0.1", ports[0]);
        };
        LettuceConnectionFactory factory = connect(servers);
        template = new StringRedisTemplate(factory);
        for (String owner : List.of("one", "two")) {
            owners.put(owner, new RedisLockRegistry(factory, "{contract}", 60_000));
        }
    }

    private RedisConfiguration replicas() {
        RedisStaticMasterReplicaConfiguration servers = new RedisStaticMasterReplicaConfiguration("127.0.0.1", ports[0]);
        Arrays.stream(ports).skip(1).forEach(port -> servers.addNode("127.0.0.1", port));
        return servers;
    }

    private static LettuceConnectionFactory connect(RedisConfiguration servers) {
        ClusterTopologyRefreshOptions refresh = ClusterTopologyRefreshOptions.builder().enableAllAdaptiveRefreshTriggers()
            .enablePeriodicRefresh(Duration.ofSeconds(1)).build();
        LettuceClientConfiguration settings = LettuceClientConfiguration.builder().commandTimeout(Duration.ofSeconds(5))
            .clientOptions(ClusterClientOptions.builder().topologyRefreshOptions(refresh).build()).build();
        LettuceConnectionFactory factory = new LettuceConnectionFactory(servers, settings);
        factory.afterPropertiesSet();
        factory.start();
        return factory;
    }

    private LettuceConnectionFactory factory() {
        return (LettuceConnectionFactory) template.getRequiredConnectionFactory();
    }

    @Override
    public void clear() {
        template.delete(List.of("{contract}:" + KEPT, "{contract}:" + LOCK, COUNTER));
    }

    @Override
    public boolean acquire(String lock, String owner) throws InterruptedException {
        return owners.get(owner).obtain(lock).tryLock(0, TimeUnit.SECONDS);
    }

    @Override
    public boolean release(String lock, String owner) {
        try {
            owners.get(owner).obtain(lock).unlock();
            return true;
        } catch (IllegalStateException held) {
            return false;
        }
    }

    @Override
    public void subscribe(Consumer<String> listener) {
        // Connections to a master with static replicas have no messages.
        LettuceConnectionFactory servers = shape.equals("replicas")
            ? connect(new RedisStandaloneConfiguration("127.0.0.1", Replicas.masterOf(ports))) : factory();
        RedisConnection connection = servers.getConnection();
        byte[] channel = CHANNEL.getBytes(StandardCharsets.UTF_8);
        connection.subscribe((message, pattern) -> listener.accept(new String(message.getBody(), StandardCharsets.UTF_8)), channel);
    }

    @Override
    public boolean losesSubscriptions() {
        return shape.equals("replicas");
    }

    @Override
    public void publish(String message) {
        template.convertAndSend(CHANNEL, message);
    }

    @Override
    public List<?> count() {
        byte[] counter = COUNTER.getBytes(StandardCharsets.UTF_8);
        return template.executePipelined((RedisCallback<Object>) connection -> {
            for (int i = 0; i < 100; i++) {
                connection.stringCommands().incr(counter);
            }
            return null;
        });
    }

    @Override
    public void flushScripts() {
        template.execute((RedisCallback<Object>) connection -> {
            connection.scriptingCommands().scriptFlush();
            return null;
        });
    }

    @Override
    public void write() {
        if (shape.equals("replicas")) {
            factory().resetConnection(); // roles are only asked for when it connects
        }
        template.opsForValue().set(COUNTER, "1");
    }
}
