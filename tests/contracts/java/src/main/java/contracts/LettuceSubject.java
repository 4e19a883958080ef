package contracts;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ReadFrom;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.masterreplica.MasterReplica;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

final class LettuceSubject implements Subject {

    private final String shape;
    private final int[] ports;
    private AbstractRedisClient client;
    private RedisClusterCommands<String, String> commands;
    private RedisClusterAsyncCommands<String, String> async;

    LettuceSubject(String shape, int[] ports) {
        this.shape = shape;
        this.ports = ports;
    }

    private List<RedisURI> nodes() {
        return Arrays.stream(ports).mapToObj(port -> RedisURI.builder().withHost("127.0.0.1").withPort(port).withTimeout(Duration.ofSeconds(5)).build())
            .toList();
    }

    private RedisURI sentinels() {
        RedisURI.Builder uri = RedisURI.builder().withSentinelMasterId("mymaster").withTimeout(Duration.ofSeconds(5));
        Arrays.stream(ports).forEach(port -> uri.withSentinel("127.0.0.1", port));
        return uri.build();
    }

    @Override
    public void open() {
        switch (shape) {
            case "cluster" -> {
                RedisClusterClient cluster = RedisClusterClient.create(nodes());
                ClusterTopologyRefreshOptions refresh = ClusterTopologyRefreshOptions.builder().enableAllAdaptiveRefreshTriggers()
                    .enablePeriodicRefresh(Duration.ofSeconds(1)).build();
                cluster.setOptions(ClusterClientOptions.builder().topologyRefreshOptions(refresh).build());
                var connection = cluster.connect();
                client = cluster;
                commands = connection.sync();
                async = connection.async();
            }
            case "sentinel" -> use(MasterReplica.connect(redis(), StringCodec.UTF8, sentinels()));
            case "replicas" -> {
                var connection = MasterReplica.connect(redis(), StringCodec.UTF8, nodes());
                connection.setReadFrom(ReadFrom.UPSTREAM);
                use(connection);
            }
            default -> use(redis().connect(nodes().get(0)));
        }
    }

    private RedisClient redis() {
        RedisClient redis = RedisClient.create();
        client = redis;
        return redis;
    }

    private void use(StatefulRedisConnection<String, String> connection) {
        commands = connection.sync();
        async = connection.async();
    }

    @Override
    public void clear() {
        commands.del(KEPT, LOCK, COUNTER);
    }

    @Override
    public boolean acquire(String lock, String owner) {
        return commands.set(lock, owner, SetArgs.Builder.nx().px(60_000)) != null;
    }

    @Override
    public boolean release(String lock, String owner) {
        try {
            return commands.<Long>evalsha(commands.digest(RELEASE), ScriptOutputType.INTEGER, new String[] {lock}, owner) == 1;
        } catch (RedisNoScriptException gone) {
            return commands.<Long>eval(RELEASE, ScriptOutputType.INTEGER, new String[] {lock}, owner) == 1;
        }
    }

    @Override
    public void subscribe(Consumer<String> listener) {
        StatefulRedisPubSubConnection<String, String> connection = switch (shape) {
            case "cluster" -> ((RedisClusterClient) client).connectPubSub();
            case "sentinel" -> ((RedisClient) client).connectPubSub(sentinels());
            case "replicas" -> ((RedisClient) client).connectPubSub(RedisURI.create("127.0.0.1", Replicas.masterOf(ports)));
            default -> ((RedisClient) client).connectPubSub(nodes().get(0));
        };
        connection.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String message) {
                listener.accept(message);
            }
        });
        connection.sync().subscribe(CHANNEL);
    }

    @Override
    public boolean losesSubscriptions() {
        return shape.equals("replicas");
    }

    @Override
    public void publish(String message) {
        commands.publish(CHANNEL, message);
    }

    @Override
    public List<?> count() throws Exception {
        List<RedisFuture<Long>> replies = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            replies.add(async.incr(COUNTER));
        }
        List<Long> counts = new ArrayList<>();
        for (RedisFuture<Long> reply : replies) {
            counts.add(reply.get(5, TimeUnit.SECONDS));
        }
        return counts;
    }

    @Override
    public void flushScripts() {
        commands.scriptFlush();
    }

    @Override
    public void write() {
        if (shape.equals("replicas")) {
            open();
        }
        commands.set(COUNTER, "1");
    }
}
