package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.FunctionMode;
import org.redisson.api.FunctionResult;
import org.redisson.api.RBitSet;
import org.redisson.api.RBloomFilter;
import org.redisson.api.RBucket;
import org.redisson.api.RClientSideCaching;
import org.redisson.api.RFunction;
import org.redisson.api.RGeo;
import org.redisson.api.RHyperLogLog;
import org.redisson.api.RReliableTopic;
import org.redisson.api.RStream;
import org.redisson.api.RedissonClient;
import org.redisson.api.geo.GeoSearchArgs;
import org.redisson.api.geo.GeoUnit;
import org.redisson.api.options.ClientSideCachingOptions;
import org.redisson.api.stream.StreamAddArgs;
import org.redisson.api.stream.StreamCreateGroupArgs;
import org.redisson.api.stream.StreamMessageId;
import org.redisson.api.stream.StreamReadArgs;
import org.redisson.api.stream.StreamReadGroupArgs;
import org.redisson.api.stream.StreamTrimArgs;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;
import org.redisson.jcache.configuration.RedissonConfiguration;

import javax.cache.Cache;
import javax.cache.Caching;
import javax.cache.configuration.MutableConfiguration;
import javax.cache.expiry.CreatedExpiryPolicy;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Objects with commands of their own: streams, positions, bits, estimates, functions, caches. */
class StructuresTest extends RedissonTest {

    @Test
    void streamIsReadByGroups() throws Exception {
        RStream<String, String> stream = redisson.getStream("stream", StringCodec.INSTANCE);
        stream.createGroup(StreamCreateGroupArgs.name("group").id(StreamMessageId.ALL).makeStream());
        StreamMessageId first = stream.add(StreamAddArgs.entry("k", "1"));
        StreamMessageId second = stream.add(StreamAddArgs.entries("k", "2", "l", "3"));
        assertEquals(Map.of(first, Map.of("k", "1")),
            stream.readGroup("group", "a", StreamReadGroupArgs.neverDelivered().count(1)));
        assertEquals(Set.of(second), stream.readGroup("group", "b", StreamReadGroupArgs.neverDelivered()).keySet());
        assertEquals(Map.of("a", 1L, "b", 1L), stream.getPendingInfo("group").getConsumerNames());
        assertEquals(1, stream.ack("group", first));
        assertEquals(Map.of(second, Map.of("k", "2", "l", "3")), stream.claim("group", "a", 0, MILLISECONDS, second));
        assertEquals(List.of(second), stream.fastAutoClaim("group", "b", 0, MILLISECONDS, StreamMessageId.MIN, 10).getIds());
        assertEquals("b", stream.listPending("group", StreamMessageId.MIN, StreamMessageId.MAX, 10).get(0).getConsumerName());
        assertEquals(1, stream.listGroups().size());
        assertEquals(second, stream.getInfo().getLastEntry().getId());
        assertEquals(1, stream.trim(StreamTrimArgs.maxLen(1).noLimit()));
        assertEquals(Set.of(second), stream.range(StreamMessageId.MIN, StreamMessageId.MAX).keySet());
    }

    @Test
    void readerWaitsForAStream() throws Exception {
        CompletableFuture<Map<StreamMessageId, Map<String, String>>> reader = spawn(() ->
            other.<String, String>getStream("waiting", StringCodec.INSTANCE)
                .read(StreamReadArgs.greaterThan(StreamMessageId.NEWEST).timeout(Duration.ofSeconds(20))));
        eventually("it is blocked", () -> this.<String>ask("INFO", "clients").contains("blocked_clients:1\r\n"));
        redisson.getStream("waiting", StringCodec.INSTANCE).add(StreamAddArgs.entry("k", "v"));
        assertEquals(List.of(Map.of("k", "v")), List.copyOf(reader.get(10, SECONDS).values()));
    }

    @Test
    void geo() {
        RGeo<String> cities = redisson.getGeo("cities");
        assertEquals(2, cities.add(13.361389, 38.115556, "Palermo") + cities.add(15.087269, 37.502669, "Catania"));
        assertEquals(166.2742, cities.dist("Palermo", "Catania", GeoUnit.KILOMETERS), 0.01);
        assertEquals(Map.of("Palermo", "sqc8b49rny0", "Catania", "sqdtr74hyu0"), cities.hash("Palermo", "Catania"));
        assertEquals(13.361389, cities.pos("Palermo").get("Palermo").getLongitude(), 1e-5);
        assertEquals(List.of("Catania"), cities.search(GeoSearchArgs.from(15, 37).radius(100, GeoUnit.KILOMETERS)));
        Map<String, Double> near = cities.searchWithDistance(GeoSearchArgs.from("Palermo").box(400, 400, GeoUnit.KILOMETERS));
        assertEquals(166.2742, near.get("Catania"), 0.01);
        assertEquals(1, cities.storeSearchTo("near", GeoSearchArgs.from(15, 37).radius(100, GeoUnit.KILOMETERS)));
        assertTrue(redisson.getGeo("near").contains("Catania"));
    }

    @Test
    void bitSet() {
        RBitSet bits = redisson.getBitSet("bits");
        assertFalse(bits.set(3));
        assertTrue(bits.set(3));
        bits.set(10, 14);
        assertEquals(5, bits.cardinality());
        assertEquals(14, bits.length());
        BitSet expected = new BitSet();
        expected.set(3);
        expected.set(10, 14);
        assertEquals(expected, bits.asBitSet());
        BitSet mask = new BitSet();
        mask.set(12, 16);
        redisson.getBitSet("mask").set(mask);
        bits.and("mask");
        assertArrayEquals(new boolean[] {false, true, true, false}, bits.get(3, 12, 13, 14));
        assertEquals(0, bits.setUnsigned(8, 16, 200));
        assertEquals(-56, bits.getSigned(8, 16));
        assertEquals(201, bits.incrementAndGetUnsigned(8, 16, 1));
    }

    @Test
    void bloomFilter() {
        RBloomFilter<String> filter = redisson.getBloomFilter("filter");
        assertTrue(filter.tryInit(1_000, 0.01));
        assertFalse(other.getBloomFilter("filter").tryInit(5, 0.5));
        assertTrue(filter.add("a"));
        assertFalse(filter.add("a"));
        assertEquals(100, filter.add(IntStream.range(0, 100).mapToObj(String::valueOf).toList()), 3);
        assertTrue(filter.contains("99"));
        assertEquals(101, filter.count(), 3);
        assertEquals(0.01, filter.getFalseProbability());
        assertThrows(RuntimeException.class, () -> redisson.getBloomFilter("none").add("x"));
    }

    @Test
    void hyperLogLog() {
        RHyperLogLog<Integer> log = redisson.getHyperLogLog("log");
        assertTrue(log.addAll(IntStream.range(0, 1_000).boxed().toList()));
        assertFalse(log.add(7));
        assertEquals(1_000, log.count(), 20);
        redisson.<Integer>getHyperLogLog("more").addAll(IntStream.range(500, 1_500).boxed().toList());
        assertEquals(1_500, log.countWith("more"), 30);
        log.mergeWith("more");
        assertEquals(1_500, log.count(), 30);
    }

    @Test
    void functions() {
        RFunction functions = redisson.getFunction(StringCodec.INSTANCE);
        functions.flush();
        String library = """
            redis.register_function('put', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)
            redis.register_function{function_name='look', callback=function(keys) return redis.call('get', keys[1]) end,
                                    flags={'no-writes'}}""";
        functions.load("lib", library);
        assertThrows(RedisException.class, () -> functions.load("lib", library));
        functions.loadAndReplace("lib", library);
        assertEquals(5L, functions.<Long>call("n", FunctionMode.WRITE, "put", FunctionResult.LONG, List.of("n"), 5));
        assertEquals("5", functions.<String>call("n", FunctionMode.READ, "look", FunctionResult.VALUE, List.of("n")));
        assertEquals(List.of("lib"), functions.list().stream().map(found -> found.getName()).toList());
        byte[] dump = functions.dump();
        functions.delete("lib");
        functions.restore(dump);
        assertEquals(6L, functions.<Long>call("n", FunctionMode.WRITE, "put", FunctionResult.LONG, List.of("n"), 1));
        functions.flush();
    }

    @Test
    void reliableTopicDeliversToAll() throws Exception {
        List<String> here = new CopyOnWriteArrayList<>();
        List<String> there = new CopyOnWriteArrayList<>();
        RReliableTopic topic = redisson.getReliableTopic("topic");
        RReliableTopic theirs = other.getReliableTopic("topic");
        String listener = topic.addListener(String.class, (channel, message) -> here.add(message));
        theirs.addListener(String.class, (channel, message) -> there.add(message));
        eventually("both listen", () -> topic.countSubscribers() == 2);
        assertEquals(2, client().getReliableTopic("topic").publish("a"));
        topic.publish("b");
        eventually("both have all", () -> here.equals(List.of("a", "b")) && there.equals(List.of("a", "b")));
        topic.removeListener(listener);
        eventually("one listens", () -> topic.countSubscribers() == 1);
        theirs.removeAllListeners();
    }

    @Test
    void cacheOfTheClientIsInvalidated() throws Exception {
        Config config = config();
        config.setProtocol(Protocol.RESP3);
        RedissonClient caching = client(config);
        RClientSideCaching cache = caching.getClientSideCaching(ClientSideCachingOptions.defaults());
        RBucket<String> cached = cache.getBucket("cached", StringCodec.INSTANCE);
        redisson.getBucket("cached", StringCodec.INSTANCE).set("1");
        assertEquals("1", cached.get());
        long reads = reads();
        assertEquals("1", cached.get());
        assertEquals(reads, reads(), "the second read does not reach the server");
        redisson.getBucket("cached", StringCodec.INSTANCE).set("2");
        eventually("it reads the new value", () -> "2".equals(cached.get()));
        cache.destroy();
    }

    /** How often clients have sent GET. */
    private long reads() {
        String commands = ask("INFO", "commandstats");
        return commands.lines().filter(line -> line.startsWith("cmdstat_get:"))
            .mapToLong(line -> Long.parseLong(line.replaceAll(".*calls=(\\d+),.*", "$1"))).sum();
    }

    @Test
    void jCacheExpiresAndReplaces() throws Exception {
        MutableConfiguration<String, String> settings = new MutableConfiguration<>();
        settings.setExpiryPolicyFactory(CreatedExpiryPolicy.factoryOf(new javax.cache.expiry.Duration(SECONDS, 2)));
        settings.setStatisticsEnabled(true);
        try (Cache<String, String> cache = Caching.getCachingProvider().getCacheManager()
                .createCache("jcache", RedissonConfiguration.fromInstance(redisson, settings))) {
            assertTrue(cache.putIfAbsent("a", "1"));
            assertFalse(cache.putIfAbsent("a", "2"));
            assertTrue(cache.replace("a", "1", "3"));
            assertEquals("3", cache.getAndPut("a", "4"));
            cache.putAll(Map.of("b", "5", "c", "6"));
            assertEquals(Map.of("a", "4", "b", "5"), cache.getAll(Set.of("a", "b", "x")));
            assertEquals("7", cache.invoke("c", (entry, arguments) -> {
                entry.setValue("7");
                return entry.getValue();
            }));
            assertTrue(cache.remove("b"));
            eventually("it expires", () -> !cache.containsKey("a"));
        }
    }
}
