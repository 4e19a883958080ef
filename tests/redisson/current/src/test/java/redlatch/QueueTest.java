package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBoundedBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RPriorityBlockingQueue;
import org.redisson.api.RRingBuffer;
import org.redisson.api.RScript;
import org.redisson.api.RTransferQueue;
import org.redisson.client.codec.StringCodec;
import redlatch.harness.Concurrently.Task;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Blocked clients, and the operations that wake them. */
class QueueTest extends RedissonTest {

    @Test
    void takeWaitsForAnElement() throws Exception {
        RBlockingQueue<String> queue = redisson.getBlockingQueue("queue");
        CompletableFuture<String> taker = spawn(() -> other.<String>getBlockingQueue("queue").poll(20, SECONDS));
        eventuallyBlocked(1);
        queue.put("a");
        assertEquals("a", taker.get(10, SECONDS));
        assertNull(queue.poll());
        long start = System.nanoTime();
        assertNull(queue.poll(1, SECONDS));
        assertTrue(NANOSECONDS.toMillis(System.nanoTime() - start) >= 990);
    }

    @Test
    void takersAreServedInOrderOfArrival() throws Exception {
        List<CompletableFuture<String>> takers = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            takers.add(spawn(() -> other.<String>getBlockingQueue("queue").poll(20, SECONDS)));
            eventuallyBlocked(i + 1);
        }
        redisson.getBlockingQueue("queue").addAll(List.of("0", "1", "2", "3", "4"));
        for (int i = 0; i < 5; i++) {
            assertEquals("" + i, takers.get(i).get(10, SECONDS));
        }
    }

    @Test
    void pushOfAScriptWakesATaker() throws Exception {
        CompletableFuture<String> taker = spawn(() ->
            other.<String>getBlockingQueue("queue", StringCodec.INSTANCE).take());
        eventuallyBlocked(1);
        redisson.getScript(StringCodec.INSTANCE).eval(RScript.Mode.READ_WRITE,
            "redis.call('rpush', KEYS[1], 'a')", RScript.ReturnType.LONG, List.of("queue"));
        assertEquals("a", taker.get(10, SECONDS));
    }

    @Test
    void takeFromSeveralAndMove() throws Exception {
        RBlockingQueue<String> first = redisson.getBlockingQueue("{q}1");
        CompletableFuture<String> taker = spawn(() -> first.pollFromAny(20, SECONDS, "{q}2", "{q}3"));
        eventuallyBlocked(1);
        redisson.getQueue("{q}3").add("a");
        assertEquals("a", taker.get(10, SECONDS));
        CompletableFuture<String> mover = spawn(() -> first.pollLastAndOfferFirstTo("{q}2", 20, SECONDS));
        eventuallyBlocked(1);
        first.put("b");
        assertEquals("b", mover.get(10, SECONDS));
        assertEquals(List.of("b"), redisson.getList("{q}2").readAll());
        first.addAll(List.of("1", "2", "3"));
        List<String> drained = new ArrayList<>();
        assertEquals(2, first.drainTo(drained, 2));
        assertEquals(List.of("1", "2"), drained);
    }

    @Test
    void boundedQueueMakesTheGiverWait() throws Exception {
        RBoundedBlockingQueue<String> queue = redisson.getBoundedBlockingQueue("queue");
        assertTrue(queue.trySetCapacity(2));
        assertTrue(queue.offer("a"));
        assertTrue(queue.offer("b"));
        assertFalse(queue.offer("c"));
        assertFalse(queue.offer("c", 100, MILLISECONDS));
        Task<Boolean> giver = spawn(() ->
            other.<String>getBoundedBlockingQueue("queue").offer("c", 20, SECONDS));
        eventually("it waits", giver::isParked);
        assertEquals("a", queue.poll());
        assertTrue(giver.get(10, SECONDS));
        assertEquals(0, queue.remainingCapacity());
        assertEquals(List.of("b", "c"), queue.readAll());
    }

    @Test
    void delayedElementsArriveInTheOrderOfTheirTime() throws Exception {
        RBlockingQueue<String> target = redisson.getBlockingQueue("queue");
        RDelayedQueue<String> delayed = redisson.getDelayedQueue(target);
        long start = System.nanoTime();
        delayed.offer("late", 600, MILLISECONDS);
        delayed.offer("early", 300, MILLISECONDS);
        delayed.offer("never", 1, SECONDS);
        assertEquals(List.of("late", "early", "never"), delayed.readAll());
        assertTrue(delayed.remove("never"));
        assertEquals("early", target.poll(20, SECONDS));
        assertTrue(NANOSECONDS.toMillis(System.nanoTime() - start) >= 290);
        assertEquals("late", target.poll(20, SECONDS));
        assertTrue(NANOSECONDS.toMillis(System.nanoTime() - start) >= 590);
        assertEquals(0, delayed.size());
        delayed.destroy();
    }

    @Test
    void priorityQueueSorts() throws Exception {
        RPriorityBlockingQueue<Integer> queue = redisson.getPriorityBlockingQueue("queue");
        for (int i : new int[] {5, 1, 4, 2, 3}) {
            assertTrue(queue.add(i));
        }
        assertEquals(List.of(1, 2, 3, 4, 5), queue.readAll());
        assertEquals(1, queue.poll());
        assertTrue(queue.remove(4));
        assertEquals(2, queue.poll(1, SECONDS));
        queue.clear();
    }

    @Test
    void ringBufferDropsTheOldest() {
        RRingBuffer<Integer> ring = redisson.getRingBuffer("ring");
        assertTrue(ring.trySetCapacity(3));
        ring.addAll(List.of(1, 2, 3, 4));
        assertTrue(ring.add(5));
        assertEquals(List.of(3, 4, 5), ring.readAll());
        ring.setCapacity(2);
        assertEquals(List.of(4, 5), ring.readAll());
        assertEquals(0, ring.remainingCapacity());
    }

    @Test
    void transferWaitsForTheTaker() throws Exception {
        RTransferQueue<String> queue = client().getTransferQueue("queue");
        assertFalse(queue.tryTransfer("a", 200, MILLISECONDS));
        CompletableFuture<Boolean> giver = spawn(() -> queue.tryTransfer("b", 20, SECONDS));
        assertEquals("b", client().<String>getTransferQueue("queue").poll(20, SECONDS));
        assertTrue(giver.get(10, SECONDS));
    }

    private void eventuallyBlocked(int clients) throws Exception {
        eventually(clients + " clients are blocked",
            () -> this.<String>ask("INFO", "clients").contains("blocked_clients:" + clients + "\r\n"));
    }
}
