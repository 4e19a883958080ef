package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.config.Config;
import org.redisson.config.Protocol;
import org.redisson.config.ReadMode;
import redlatch.harness.Concurrently.Task;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Passwords, lost connections, a pausing server, and the connection modes that query the server's topology. */
class ConnectionTest extends RedissonTest {

    ConnectionTest() {
        settings = new Settings(Protocol.RESP3, true, "s3cret", 0);
    }

    @Test
    void passwordIsAskedFor() {
        for (String wrong : new String[] {null, "wrong"}) {
            Config config = config().setPassword(wrong);
            config.useSingleServer().setRetryAttempts(0);
            RedisException e = assertThrows(RedisException.class, () -> Redisson.create(config).shutdown());
            assertTrue(stackOf(e).contains(wrong == null ? "NOAUTH" : "WRONGPASS"), stackOf(e));
        }
        Config named = config().setUsername("default");
        named.useSingleServer().setClientName("named");
        assertTrue(client(named).getLock("lock").tryLock());
        assertTrue(this.<String>ask("CLIENT", "LIST").contains(" name=named "));
    }

    private static String stackOf(Throwable e) {
        return e == null ? "" : e + "\n" + stackOf(e.getCause());
    }

    @Test
    void lostConnectionsAndSubscriptionsComeBack() throws Exception {
        BlockingQueue<String> received = new LinkedBlockingQueue<>();
        other.getTopic("topic").addListener(String.class, (channel, message) -> received.add(message));
        redisson.getLock("lock").lock();
        Task<Boolean> waiter = spawn(() -> other.getLock("lock").tryLock(30, SECONDS));
        eventually("it waits", waiter::isParked);
        assertTrue(this.<Long>ask("CLIENT", "KILL", "TYPE", "pubsub") > 0);
        assertTrue(this.<Long>ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") > 0);
        eventually("the topic is heard again", () -> {
            redisson.getTopic("topic").publish("again");
            return "again".equals(received.poll(50, MILLISECONDS));
        });
        eventually("it waits again", () -> channels().size() == 2);
        redisson.getLock("lock").unlock();
        assertTrue(waiter.get(20, SECONDS));  // before the lease expires
    }

    @Test
    void pauseHoldsWritesBack() {
        RLock lock = redisson.getLock("lock");
        lock.isLocked();
        long start = System.nanoTime();
        ask("CLIENT", "PAUSE", 500, "WRITE");
        assertFalse(lock.isLocked());
        long readMs = NANOSECONDS.toMillis(System.nanoTime() - start);
        lock.lock();
        long writtenMs = NANOSECONDS.toMillis(System.nanoTime() - start);
        assertTrue(readMs < writtenMs && writtenMs >= 490, "read after " + readMs + " ms, wrote after " + writtenMs);
        lock.unlock();
    }

    @Test
    void masterSlaveModeAsksForReplicas() throws Exception {
        Config config = new Config().setPassword("s3cret");
        config.useMasterSlaveServers().setMasterAddress("redis://127.0.0.1:" + server.port())
            .setReadMode(ReadMode.MASTER);
        locksWith(client(config));
    }

    @Test
    void replicatedModeAsksForTheRole() throws Exception {
        Config config = new Config().setPassword("s3cret");
        config.useReplicatedServers().addNodeAddress("redis://127.0.0.1:" + server.port());
        locksWith(client(config));
    }

    /** In these modes every lock operation is a batch with WAIT, if there is a replica. */
    private void locksWith(RedissonClient client) throws Exception {
        for (RLock lock : List.of(client.getLock("lock"), client.getFairLock("fair"),
                client.getReadWriteLock("rw").readLock(), client.getReadWriteLock("rw").writeLock())) {
            lock.lock();
            Task<Boolean> waiter = spawn(() -> {
                boolean locked = lock.tryLock(20, SECONDS);
                lock.unlock();
                return locked;
            });
            eventually("it waits, or reads too", () -> waiter.isParked() || waiter.isDone());
            lock.unlock();
            assertTrue(waiter.get(10, SECONDS));
            assertFalse(lock.isLocked());
        }
        client.getSemaphore("semaphore").trySetPermits(1);
        assertTrue(client.getSemaphore("semaphore").tryAcquire(Duration.ofSeconds(5)));
    }
}
