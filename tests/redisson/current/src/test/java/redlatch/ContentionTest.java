package redlatch;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import redlatch.harness.Counter;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

@Isolated
class ContentionTest extends RedissonTest {

    @Test
    void tenThousandPairsOnOneThread() throws Exception {
        RLock lock = redisson.getLock("lock");
        for (int i = 0; i < 10_000; i++) {
            lock.lock();
            lock.unlock();
        }
        assertFalse(lock.isLocked());
        eventually("nothing is left", () -> ask("DBSIZE").equals(0L));
    }

    @Test
    void oneOfAThousandThreadsWins() {
        List<Boolean> results = together(1_000, () -> redisson.getLock("lock").tryLock());
        assertEquals(1, Collections.frequency(results, true));
        assertTrue(redisson.getLock("lock").forceUnlock());
    }

    @Test
    void aHundredThreadsEachGetTheirTurn() throws Exception {
        Counter counter = new Counter();
        List<Boolean> results = together(100, () -> {
            RLock lock = redisson.getLock("lock");
            if (!lock.tryLock(20, SECONDS)) {
                return false;
            }
            counter.increment();
            lock.unlock();
            return true;
        });
        assertEquals(100, Collections.frequency(results, true));
        assertEquals(100, counter.value());
        eventually("no subscription is left", () -> channels().isEmpty());
    }

    @Test
    void aHundredClientsConnectAtOnce() throws Exception {
        EventLoopGroup loops = new MultiThreadIoEventLoopGroup(4, NioIoHandler.newFactory());
        ExecutorService executor = Executors.newFixedThreadPool(4);
        try {
            Counter counter = new Counter();
            together(100, () -> {
                RedissonClient client = client(config().setEventLoopGroup(loops).setExecutor(executor));
                RLock lock = client.getLock("lock");
                lock.lock();
                counter.increment();
                lock.unlock();
            });
            assertEquals(100, counter.value());
            long connections = this.<String>ask("CLIENT", "LIST").lines().count();
            assertTrue(connections >= 2_500, connections + " connections");
        } finally {
            shutdownMoreClients();
            executor.shutdown();
            loops.shutdownGracefully(0, 1, SECONDS).await(10, SECONDS);
        }
    }

    @Test
    void tenClientsOfTenThreadsGuardACounter() throws Exception {
        List<RedissonClient> clients = IntStream.range(0, 10).mapToObj(i -> client()).toList();
        AtomicInteger turn = new AtomicInteger();
        Counter counter = new Counter();
        together(100, () -> {
            RLock lock = clients.get(turn.getAndIncrement() % 10).getLock("lock");
            for (int i = 0; i < 10; i++) {
                lock.lock();
                counter.increment();
                lock.unlock();
            }
        });
        assertEquals(1_000, counter.value());
        eventually("no subscription is left", () -> channels().isEmpty());
    }
}
