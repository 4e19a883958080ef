package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RPatternTopic;
import org.redisson.api.RTopic;
import org.redisson.client.codec.StringCodec;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

class TopicTest extends RedissonTest {

    private final BlockingQueue<String> received = new LinkedBlockingQueue<>();

    @Test
    void topicDeliversInOrder() throws Exception {
        deliversInOrder(redisson.getTopic("topic"), other.getTopic("topic"), "CHANNELS");
    }

    @Test
    void shardedTopicDeliversInOrder() throws Exception {
        deliversInOrder(redisson.getShardedTopic("topic"), other.getShardedTopic("topic"), "SHARDCHANNELS");
    }

    private void deliversInOrder(RTopic publisher, RTopic subscriber, String list) throws Exception {
        assertEquals(0, publisher.publish("nobody hears"));
        subscriber.addListener(String.class, (channel, message) -> received.add(channel + "=" + message));
        assertEquals(List.of("topic"), ask("PUBSUB", list));
        List<String> expected = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            assertEquals(1, publisher.publish("m" + i));
            expected.add("topic=m" + i);
        }
        assertEquals(expected, take(100));
        assertEquals(1, publisher.countSubscribers());
        subscriber.removeAllListeners();
        eventually("nobody listens", () -> ask("PUBSUB", list).equals(List.of()));
        assertEquals(0, publisher.publish("nobody hears"));
    }

    @Test
    void patternTopicHearsWhatMatches() throws Exception {
        RPatternTopic pattern = other.getPatternTopic("news.[a-c]?");
        pattern.addListener(String.class,
            (name, channel, message) -> received.add(name + " " + channel + "=" + message));
        assertEquals(1L, this.<Long>ask("PUBSUB", "NUMPAT"));
        assertEquals(1, redisson.getTopic("news.a1").publish("1"));
        assertEquals(0, redisson.getTopic("news.d1").publish("2"));
        assertEquals(1, redisson.getTopic("news.c2").publish("3"));
        assertEquals(List.of("news.[a-c]? news.a1=1", "news.[a-c]? news.c2=3"), take(2));
        pattern.removeAllListeners();
        eventually("nobody listens", () -> ask("PUBSUB", "NUMPAT").equals(0L));
    }

    @Test
    void oneConnectionCarriesManySubscriptions() throws Exception {
        IntStream.range(0, 50).forEach(i -> other.getTopic("topic" + i, StringCodec.INSTANCE)
            .addListener(String.class, (channel, message) -> received.add(message)));
        assertEquals(50, channels().size());
        for (int i = 0; i < 50; i++) {
            assertEquals(1L, this.<Long>ask("PUBLISH", "topic" + i, "m" + i));
        }
        assertEquals(50, take(50).stream().distinct().count());
        IntStream.range(0, 50).forEach(i -> other.getTopic("topic" + i).removeAllListeners());
        eventually("nobody listens", () -> channels().isEmpty());
    }

    private List<String> take(int count) throws InterruptedException {
        List<String> messages = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String message = received.poll(10, SECONDS);
            assertNotNull(message, "only " + messages + " came");
            messages.add(message);
        }
        assertTrue(received.isEmpty());
        return messages;
    }
}
