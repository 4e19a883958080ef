package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.EvictionMode;
import org.redisson.api.RListMultimapCache;
import org.redisson.api.RLocalCachedMap;
import org.redisson.api.RMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RMapCacheNative;
import org.redisson.api.RSetCache;
import org.redisson.api.map.event.EntryCreatedListener;
import org.redisson.api.map.event.EntryExpiredListener;
import org.redisson.api.map.event.EntryRemovedListener;
import org.redisson.api.map.event.EntryUpdatedListener;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Maps and sets, with their entries' own times to live: the largest scripts, and most of the struct library. */
class MapTest extends RedissonTest {

    @Test
    void map() {
        RMap<String, Integer> map = redisson.getMap("map");
        assertNull(map.put("a", 1));
        assertEquals(1, map.put("a", 2));
        assertEquals(2, map.putIfAbsent("a", 9));
        assertTrue(map.replace("a", 2, 3));
        assertFalse(map.replace("a", 2, 4));
        assertEquals(5, redisson.<String, Integer>getMap("numbers", StringCodec.INSTANCE).addAndGet("a", 5));
        assertEquals(2, map.merge("b", 2, Integer::sum));
        assertEquals(5, map.merge("b", 3, Integer::sum));
        assertEquals(7, map.computeIfAbsent("c", key -> 7));
        assertFalse(map.remove("c", 8));
        assertTrue(map.remove("c", 7));
        map.putAll(Map.of("d", 4, "e", 5));
        assertEquals(Map.of("a", 3, "b", 5, "d", 4, "e", 5), map.readAllMap());
        assertEquals(Map.of("a", 3, "e", 5), map.getAll(Set.of("a", "e", "none")));
        assertEquals(Set.of("a", "b", "d", "e"), new HashSet<>(map.keySet()));  // HSCAN
        assertEquals(2, map.fastRemove("d", "e", "f"));
        assertEquals(2, map.size());
    }

    @Test
    void entriesOfAMapCacheExpire() throws Exception {
        RMapCache<String, String> cache = redisson.getMapCache("cache");
        assertNull(cache.put("short", "1", 200, MILLISECONDS));
        cache.put("long", "2", 20, SECONDS);
        cache.put("idle", "3", 20, SECONDS, 300, MILLISECONDS);
        cache.put("forever", "4");
        assertEquals("1", cache.get("short"));
        long ttlMs = cache.remainTimeToLive("long");
        assertTrue(18_000 < ttlMs && ttlMs <= 20_000, ttlMs + " ms");
        eventually("the short one is gone", () -> cache.get("short") == null);
        Thread.sleep(350);  // reading the entry would keep it alive
        assertNull(cache.get("idle"));
        assertEquals(Map.of("long", "2", "forever", "4"), cache.readAllMap());
        assertTrue(cache.expireEntry("forever", Duration.ofMillis(100), Duration.ZERO));
        eventually("the last one is gone", () -> cache.get("forever") == null);
        cache.destroy();
    }

    @Test
    void mapCacheTellsItsListeners() throws Exception {
        RMapCache<String, String> cache = redisson.getMapCache("cache");
        Queue<String> events = new ConcurrentLinkedQueue<>();
        RMapCache<String, String> watched = other.getMapCache("cache");
        watched.addListener((EntryCreatedListener<String, String>) e -> events.add("created " + e.getValue()));
        watched.addListener((EntryUpdatedListener<String, String>) e ->
            events.add("updated " + e.getOldValue() + "->" + e.getValue()));
        watched.addListener((EntryRemovedListener<String, String>) e -> events.add("removed " + e.getOldValue()));
        watched.addListener((EntryExpiredListener<String, String>) e -> events.add("expired " + e.getValue()));
        cache.put("k", "1");
        cache.put("k", "2");
        cache.remove("k");
        cache.put("x", "3", 100, MILLISECONDS);
        eventually("it expires", () -> {
            cache.get("x");
            return events.contains("expired 3");
        });
        assertEquals(Set.of("created 1", "updated 1->2", "removed 2", "created 3", "expired 3"), Set.copyOf(events));
        cache.destroy();
        watched.destroy();
    }

    @Test
    void mapCacheKeepsToItsSize() throws Exception {
        RMapCache<Integer, Integer> cache = redisson.getMapCache("cache");
        cache.setMaxSize(3, EvictionMode.LRU);
        for (int i = 0; i < 3; i++) {
            cache.put(i, i);
        }
        long filledMs = System.currentTimeMillis();
        eventually("the clock of the client ticks", () -> System.currentTimeMillis() > filledMs);
        cache.get(0);
        cache.put(3, 3);
        assertEquals(Set.of(0, 2, 3), cache.readAllKeySet());
        cache.destroy();
    }

    @Test
    void entriesOfASetCacheAndAMultimapExpire() throws Exception {
        RSetCache<String> set = redisson.getSetCache("set");
        assertTrue(set.add("short", 200, MILLISECONDS));
        assertTrue(set.add("forever"));
        assertFalse(set.add("forever"));
        assertTrue(set.contains("short"));
        eventually("the short one is gone", () -> set.readAll().equals(Set.of("forever")));
        assertFalse(set.contains("short"));
        set.destroy();

        RListMultimapCache<String, String> multimap = redisson.getListMultimapCache("multimap");
        multimap.putAll("k", List.of("1", "2", "1"));
        multimap.put("kept", "3");
        assertTrue(multimap.expireKey("k", 200, MILLISECONDS));
        assertEquals(List.of("1", "2", "1"), multimap.getAll("k"));
        eventually("the key is gone", () -> multimap.getAll("k").isEmpty());
        assertEquals(List.of("3"), multimap.getAll("kept"));
        multimap.destroy();
    }

    @Test
    void entriesOfANativeMapCacheExpireFromRedisSevenFourOn() throws Exception {
        RMapCacheNative<String, String> cache = redisson.getMapCacheNative("cache");
        if (this.<List<?>>ask("COMMAND", "INFO", "HPEXPIRE").get(0) == null) {
            RedisException e = assertThrows(RedisException.class, () -> cache.put("k", "v", Duration.ofMillis(200)));
            assertTrue(e.getMessage().contains("ERR Unknown "), e.getMessage());
            return;
        }
        assertNull(cache.put("k", "v", Duration.ofMillis(200)));
        cache.put("kept", "v");
        assertTrue(cache.remainTimeToLive("k") <= 200);
        assertEquals(-1, cache.remainTimeToLive("kept"));
        eventually("the entry is gone", () -> !cache.containsKey("k"));
        assertEquals(Map.of("kept", "v"), cache.readAllMap());
    }

    @Test
    void localCachesAreInvalidated() throws Exception {
        LocalCachedMapOptions<String, String> options = LocalCachedMapOptions.name("map");
        RLocalCachedMap<String, String> mine = redisson.getLocalCachedMap(options);
        RLocalCachedMap<String, String> theirs = other.getLocalCachedMap(options);
        mine.put("k", "1");
        assertEquals("1", theirs.get("k"));
        mine.put("k", "2");
        eventually("the other's copy is dropped", () -> "2".equals(theirs.get("k")));
        theirs.fastRemove("k");
        eventually("and this one's", () -> mine.get("k") == null);
        mine.destroy();
        theirs.destroy();
    }

    @Test
    void wholeObjectsExpireAndMove() throws Exception {
        RMap<String, String> map = redisson.getMap("map");
        map.put("k", "v");
        assertTrue(map.expire(Duration.ofSeconds(20)));
        assertFalse(map.expireIfNotSet(Duration.ofSeconds(5)));
        assertFalse(map.expireIfGreater(Duration.ofSeconds(5)));
        assertTrue(map.expireIfLess(Duration.ofSeconds(10)));
        assertTrue(map.remainTimeToLive() <= 10_000);
        assertTrue(map.clearExpire());
        assertEquals(-1, map.remainTimeToLive());
        byte[] dump = map.dump();
        map.rename("renamed");
        assertEquals(new HashMap<>(Map.of("k", "v")), redisson.getMap("renamed").readAllMap());
        redisson.getMap("restored").restore(dump);
        assertEquals(Map.of("k", "v"), redisson.getMap("restored").readAllMap());
        assertTrue(redisson.getMap("restored").copy("copy"));
        assertEquals(3, redisson.getKeys().count());
        assertEquals(2, redisson.getKeys().deleteByPattern("re*"));
        assertTrue(redisson.getMap("copy").expire(Duration.ofMillis(50)));
        eventually("it is gone", () -> redisson.getKeys().count() == 0);
    }
}
