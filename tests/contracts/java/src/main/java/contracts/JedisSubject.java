package contracts;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.JedisSentineled;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.params.SetParams;

final class JedisSubject implements Subject {

    private final String shape;
    private final int[] ports;
    private UnifiedJedis client;
    private String sha;

    JedisSubject(String shape, int[] ports) {
        this.shape = shape;
        this.ports = ports;
    }

    @Override
    public void open() {
        Set<HostAndPort> nodes = Arrays.stream(ports).mapToObj(port -> new HostAndPort("127.0.0.1", port)).collect(Collectors.toSet());
        DefaultJedisClientConfig settings = DefaultJedisClientConfig.builder().build();
        client = switch (shape) {
            case "single" -> new JedisPooled("127.0.0.1", ports[0]);
            case "replicas" -> new JedisPooled("127.0.0.1", Replicas.masterOf(ports));
            case "cluster" -> new JedisCluster(nodes, settings);
            case "sentinel" -> new JedisSentineled("mymaster", settings, nodes, settings);
            default -> throw new IllegalArgumentException(shape);
        };
    }

    @Override
    public void clear() {
        client.del(KEPT, LOCK, COUNTER);
    }

    @Override
    public boolean acquire(String lock, String owner) {
        return client.set(lock, owner, SetParams.setParams().nx().px(60_000)) != null;
    }

    @Override
    public boolean release(String lock, String owner) {
        if (sha == null) {
            sha = client.scriptLoad(RELEASE, lock);
        }
        try {
            return client.evalsha(sha, List.of(lock), List.of(owner)).equals(1L);
        } catch (JedisNoScriptException gone) {
            return client.eval(RELEASE, List.of(lock), List.of(owner)).equals(1L);
        }
    }

    @Override
    public void subscribe(Consumer<String> listener) {
        JedisPubSub subscription = new JedisPubSub() {
            @Override
            public void onMessage(String channel, String message) {
                listener.accept(message);
            }
        };
        Thread thread = new Thread(() -> client.subscribe(subscription, CHANNEL));
        thread.setUncaughtExceptionHandler((ended, error) -> {});
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public boolean losesSubscriptions() {
        return true;
    }

    @Override
    public void publish(String message) {
        client.publish(CHANNEL, message);
    }

    @Override
    public List<?> count() {
        List<Response<Long>> replies = new ArrayList<>();
        try (AbstractPipeline pipeline = client.pipelined()) {
            for (int i = 0; i < 100; i++) {
                replies.add(pipeline.incr(COUNTER));
            }
        }
        return replies.stream().map(Response::get).toList();
    }

    @Override
    public void flushScripts() {
        client.scriptFlush(LOCK);
    }

    @Override
    public void write() {
        if (shape.equals("replicas")) {
            open();
        }
        client.set(COUNTER, "1");
    }
}
