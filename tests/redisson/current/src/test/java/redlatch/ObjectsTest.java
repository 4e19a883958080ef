package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RLexSortedSet;
import org.redisson.api.RList;
import org.redisson.api.RLongAdder;
import org.redisson.api.RScheduledExecutorService;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RSet;
import org.redisson.api.RTimeSeries;
import org.redisson.api.TimeSeriesEntry;
import org.redisson.api.WorkerOptions;

import java.io.Serializable;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** One test for each further object: its commands, and above all its scripts. */
class ObjectsTest extends RedissonTest {

    @Test
    void bucket() throws Exception {
        RBucket<String> bucket = redisson.getBucket("bucket");
        assertTrue(bucket.setIfAbsent("1", Duration.ofSeconds(20)));
        assertFalse(bucket.setIfAbsent("2"));
        assertTrue(bucket.compareAndSet("1", "2"));
        assertFalse(bucket.compareAndSet("1", "3"));
        assertEquals("2", bucket.getAndSet("3"));
        bucket.set("4", Duration.ofMillis(100));
        bucket.setAndKeepTTL("5");
        assertEquals("5", bucket.get());
        eventually("it expires", () -> bucket.get() == null);
        bucket.set("6");
        assertEquals("6", bucket.getAndDelete());
        redisson.getBuckets().set(Map.of("a", 1, "b", 2));
        assertFalse(redisson.getBuckets().trySet(Map.of("b", 3, "c", 4)));
        assertEquals(Map.of("a", 1, "b", 2), redisson.getBuckets().get("a", "b", "c"));
    }

    @Test
    void numbers() {
        RAtomicLong counter = redisson.getAtomicLong("counter");
        together(10, () -> {
            for (int i = 0; i < 50; i++) {
                counter.incrementAndGet();
            }
        });
        assertEquals(500, counter.get());
        assertTrue(counter.compareAndSet(500, 7));
        assertFalse(counter.compareAndSet(500, 8));
        assertEquals(7, counter.getAndAdd(3));
        assertEquals(10, counter.getAndDelete());
        assertEquals(0.3, redisson.getAtomicDouble("double").addAndGet(0.1 + 0.2), 1e-9);
        RLongAdder mine = redisson.getLongAdder("adder");
        RLongAdder theirs = other.getLongAdder("adder");
        mine.add(3);
        theirs.add(4);
        assertEquals(7, mine.sum());
        mine.destroy();
        theirs.destroy();
    }

    @Test
    void list() {
        RList<String> list = redisson.getList("list");
        list.addAll(List.of("a", "b", "c", "d"));
        assertTrue(list.addAll(2, List.of("x", "y")));
        assertEquals(List.of("a", "b", "x", "y", "c", "d"), list.readAll());
        assertEquals(3, list.indexOf("y"));
        assertEquals("y", list.remove(3));
        assertEquals("a", list.set(0, "A"));
        assertEquals(1, list.addAfter("A", "B") - 5);
        assertTrue(list.removeAll(List.of("b", "c")));
        assertEquals(List.of("A", "B", "x", "d"), list.readAll());
        list.trim(1, 2);
        assertEquals(List.of("B", "x"), list.readAll());
    }

    @Test
    void set() {
        RSet<Integer> set = redisson.getSet("set");
        assertTrue(set.addAll(List.of(1, 2, 3, 4)));
        assertTrue(set.containsAll(List.of(1, 4)));
        assertFalse(set.containsAll(List.of(1, 5)));
        assertTrue(set.retainAll(List.of(2, 3, 9)));
        redisson.getSet("other").addAll(List.of(3, 4));
        assertEquals(Set.of(3), set.readIntersection("other"));
        assertEquals(1, set.countIntersection("other"));
        assertTrue(set.move("other", 2));
        assertEquals(Set.of(2, 3, 4), redisson.getSet("other").readAll());
        assertEquals(Set.of(3), new HashSet<>(set));  // SSCAN
    }

    @Test
    void scoredSortedSet() throws Exception {
        RScoredSortedSet<String> set = redisson.getScoredSortedSet("set");
        assertEquals(3, set.addAll(Map.of("a", 1.5, "b", 2.0, "c", -3.0)));
        assertFalse(set.tryAdd(9, "a"));
        assertEquals(12.5, set.addScore("a", 11));
        assertEquals(List.of("c", "b", "a"), List.copyOf(set.readAll()));
        assertEquals(1, set.addAndGetRank(0, "d"));
        assertEquals(List.of("c", "d"), List.copyOf(set.valueRange(Double.NEGATIVE_INFINITY, true, 1, true)));
        assertEquals(2, set.entryRange(0, 1).size());
        assertEquals("c", set.pollFirst());
        assertEquals(12.5, set.lastScore());
        assertEquals(3, set.replace("b", "e") ? set.size() : 0);
        CompletableFuture<String> taker = spawn(() ->
            other.<String>getScoredSortedSet("empty").pollFirst(Duration.ofSeconds(20)));
        eventually("it is blocked", () -> this.<String>ask("INFO", "clients").contains("blocked_clients:1\r\n"));
        redisson.getScoredSortedSet("empty").add(1, "x");
        assertEquals("x", taker.get(10, SECONDS));
        RLexSortedSet lex = redisson.getLexSortedSet("lex");
        lex.addAll(List.of("b", "a", "d", "c"));
        assertEquals(List.of("b", "c"), List.copyOf(lex.range("a", false, "c", true)));
    }

    @Test
    void timeSeries() throws Exception {
        RTimeSeries<String, String> series = redisson.getTimeSeries("series");
        for (int i = 1; i <= 5; i++) {
            series.add(i * 100, "v" + i, "label" + i);
        }
        assertEquals(5, series.size());
        assertEquals("v3", series.get(300));
        assertEquals("label2", series.getEntry(200).getLabel());
        assertEquals(List.of("v2", "v3", "v4"), List.copyOf(series.range(150, 400)));
        assertEquals(List.of("v4", "v3"), List.copyOf(series.rangeReversed(300, 400)));
        assertEquals("v1", series.pollFirst());
        assertEquals(2, series.removeRange(200, 300));
        assertEquals(List.of(400L, 500L),
            series.entryRange(0, 1_000).stream().map(TimeSeriesEntry::getTimestamp).toList());
        series.add(600, "short", Duration.ofMillis(200));
        assertEquals("short", series.get(600));
        eventually("the short one is gone", () -> series.range(550, 650).isEmpty());
        series.destroy();
    }

    @Test
    void remoteServiceAnswers() throws Exception {
        client().getRemoteService("calls").register(Doubler.class, value -> 2 * value, 2);
        Doubler remote = client().getRemoteService("calls").get(Doubler.class, 20, SECONDS);
        assertEquals(42, remote.twice(21));
    }

    public interface Doubler {
        int twice(int value);
    }

    @Test
    void executorRunsTasks() throws Exception {
        client().getExecutorService("tasks").registerWorkers(WorkerOptions.defaults());
        RScheduledExecutorService executor = client().getExecutorService("tasks");
        assertEquals(7, executor.submit(new Seven()).get(20, SECONDS));
        assertEquals(7, executor.schedule(new Seven(), 1, SECONDS).get(20, SECONDS));
        executor.shutdown();
    }

    public static final class Seven implements Callable<Integer>, Serializable {
        @Override
        public Integer call() {
            return 7;
        }
    }
}
