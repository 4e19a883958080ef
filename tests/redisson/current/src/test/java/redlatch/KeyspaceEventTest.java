package redlatch;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.redisson.api.DeletedObjectListener;
import org.redisson.api.ExpiredObjectListener;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RList;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.listener.ListAddListener;
import org.redisson.api.listener.ListRemoveListener;
import org.redisson.api.listener.ScoredSortedSetAddListener;
import org.redisson.api.listener.SetObjectListener;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.eventually;

/** Listeners of objects receive the keyspace events of their keys. */
class KeyspaceEventTest extends RedissonTest {

    private final BlockingQueue<String> events = new LinkedBlockingQueue<>();

    @BeforeEach
    void forget() {
        events.clear();
    }

    @AfterEach
    void stopListening() throws Exception {
        eventually("nobody listens", () -> ask("PUBSUB", "NUMPAT").equals(0L));
    }

    @Test
    void eventsAreSentOnlyOnDemand() throws Exception {
        assertEquals("OK", ask("CONFIG", "SET", "notify-keyspace-events", ""));
        RBucket<String> bucket = other.getBucket("bucket");
        int listener = bucket.addListener((SetObjectListener) name -> events.add("set " + name));
        redisson.getBucket("bucket").set("unheard");
        notify("E$");
        redisson.getBucket("bucket").set("heard");
        assertEquals("set bucket", events.poll(10, SECONDS));
        assertTrue(events.isEmpty());
        bucket.removeListener(listener);
    }

    @Test
    void untouchedKeysExpireAloud() throws Exception {
        notify("Egx");
        RBucket<String> bucket = other.getBucket("bucket");
        int listener = bucket.addListener((ExpiredObjectListener) name -> events.add("expired " + name));
        long start = System.nanoTime();
        redisson.getBucket("bucket").set("value", Duration.ofMillis(300));
        assertEquals("expired bucket", events.poll(10, SECONDS));
        assertTrue(NANOSECONDS.toMillis(System.nanoTime() - start) >= 290);
        bucket.removeListener(listener);
    }

    @Test
    void lockTellsOfItsEnd() throws Exception {
        notify("Egx");
        RLock lock = other.getLock("lock");
        int expired = lock.addListener((ExpiredObjectListener) name -> events.add("expired " + name));
        int deleted = lock.addListener((DeletedObjectListener) name -> events.add("deleted " + name));
        redisson.getLock("lock").lock(200, MILLISECONDS);
        assertEquals("expired lock", events.poll(10, SECONDS));
        redisson.getLock("lock").lock();
        redisson.getLock("lock").unlock();
        assertEquals("deleted lock", events.poll(10, SECONDS));
        lock.removeListener(expired);
        lock.removeListener(deleted);
    }

    @Test
    void collectionsTellOfTheirChanges() throws Exception {
        notify("Elz");
        RList<String> list = other.getList("list");
        RScoredSortedSet<String> set = other.getScoredSortedSet("set");
        List<Integer> listeners = List.of(list.addListener((ListAddListener) name -> events.add("add " + name)),
            list.addListener((ListRemoveListener) name -> events.add("remove " + name)));
        int scored = set.addListener((ScoredSortedSetAddListener) name -> events.add("score " + name));
        redisson.getList("list").add("a");
        redisson.getList("list").removeAll(List.of("a"));  // a script
        redisson.getScoredSortedSet("set").add(1, "a");
        for (String event : List.of("add list", "remove list", "score set")) {
            assertEquals(event, events.poll(10, SECONDS));
        }
        listeners.forEach(list::removeListener);
        set.removeListener(scored);
    }

    private void notify(String classes) {
        assertEquals("OK", ask("CONFIG", "SET", "notify-keyspace-events", classes));
    }
}
