package redlatch;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import redlatch.harness.Resp;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/**
 * Measures how fast Redisson locks and unlocks, on running servers, in alternating rounds. It runs only by name:
 * {@code mvn -q -pl current -am test -Dtest=LockBench -Dbench.ports=6379,6380}. Ratios are relative to the first server.
 */
class LockBench {

    private static final int ROUNDS = Integer.getInteger("bench.rounds", 7);
    private static final long ROUND_MS = Long.getLong("bench.round.ms", 1000);

    private record Work(String name, int threads, BiFunction<RedissonClient, String, RLock> lock) {}

    private static final List<Work> ALL = List.of(
        new Work("lock, unlock", 1, RedissonClient::getLock),
        new Work("lock, unlock", 16, RedissonClient::getLock),
        new Work("fair lock, unlock", 1, RedissonClient::getFairLock),
        new Work("write lock, unlock", 1, (client, name) -> client.getReadWriteLock(name).writeLock()));

    /** A server, and its rate in each round: pairs of lock and unlock per second. */
    private record Subject(String name, RedissonClient client, double[] rates) {}

    @Test
    @Timeout(value = 10, unit = TimeUnit.MINUTES)
    void measure() throws Exception {
        int[] ports = Arrays.stream(System.getProperty("bench.ports").split(",")).mapToInt(Integer::parseInt).toArray();
        List<Subject> subjects = new ArrayList<>();
        for (int port : ports) {
            RedissonClient client = Redisson.create(Settings.DEFAULT.config(port));
            subjects.add(new Subject(version(port) + " :" + port, client, new double[ROUNDS]));
        }
        System.out.println("| work | threads | server | pairs/s | times as fast (rounds) |\n|---|---|---|---|---|");
        for (Work work : ALL) {
            for (int round = -1; round < ROUNDS; round++) {  // the first round warms up the compiler
                for (Subject subject : subjects) {
                    double rate = rate(work, subject.client);
                    if (round >= 0) {
                        subject.rates[round] = rate;
                    }
                }
            }
            Subject first = subjects.get(0);
            for (Subject subject : subjects) {
                double[] ratios = IntStream.range(0, ROUNDS).mapToDouble(i -> first.rates[i] / subject.rates[i]).sorted().toArray();
                String ratio = subject == first ? "" : "%.2f (%.2f–%.2f)".formatted(ratios[ROUNDS / 2], ratios[0], ratios[ROUNDS - 1]);
                double median = Arrays.stream(subject.rates).sorted().toArray()[ROUNDS / 2];
                System.out.println("| %s | %d | %s | %,.0f | %s |".formatted(work.name, work.threads, subject.name, median, ratio));
            }
        }
        subjects.forEach(subject -> subject.client.shutdown());
    }

    /** Returns pairs per second, with one lock per thread. */
    private static double rate(Work work, RedissonClient client) throws InterruptedException {
        long[] pairs = new long[work.threads];
        CountDownLatch done = new CountDownLatch(work.threads);
        long start = System.nanoTime();
        long end = start + ROUND_MS * 1_000_000;
        for (int i = 0; i < work.threads; i++) {
            int number = i;
            new Thread(() -> {
                RLock lock = work.lock.apply(client, "bench:" + work.name + ":" + number);
                while (System.nanoTime() < end) {
                    lock.lock();
                    lock.unlock();
                    pairs[number]++;
                }
                done.countDown();
            }).start();
        }
        done.await();
        return Arrays.stream(pairs).sum() * 1e9 / (System.nanoTime() - start);
    }

    private static String version(int port) {
        try (Resp resp = new Resp(port)) {
            String info = resp.call("INFO", "server").toString();
            for (String name : List.of("os:(Redlatch \\S+)", "(valkey)_version:(\\S+)", "(redis)_version:(\\S+)")) {
                Matcher found = Pattern.compile(name).matcher(info);
                if (found.find()) {
                    return found.groupCount() == 1 ? found.group(1) : found.group(1) + " " + found.group(2);
                }
            }
            return "?";
        }
    }
}
