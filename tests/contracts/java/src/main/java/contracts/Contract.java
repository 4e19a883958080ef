package contracts;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;

/** The steps that tests/contracts/README.md describes: Contract LIBRARY SHAPE PORT... */
final class Contract {

    private interface Step {
        void run() throws Exception;
    }

    private final Subject subject;
    private final Set<String> received = ConcurrentHashMap.newKeySet();

    private Contract(Subject subject) {
        this.subject = subject;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    /** Tries until it is true, whatever fails meanwhile. */
    private static void until(Callable<Boolean> what) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (true) {
            try {
                if (what.call()) {
                    return;
                }
            } catch (Exception error) {
                if (System.nanoTime() > end) {
                    throw error;
                }
            }
            check(System.nanoTime() < end, "not within 30 s");
            Thread.sleep(50);
        }
    }

    private void takeAndGiveBack(String lock, String owner) throws Exception {
        check(subject.acquire(lock, owner), "the lock was not granted");
        check(subject.release(lock, owner), "the lock was not released");
    }

    private void message(String text) throws Exception {
        until(() -> {
            subject.publish(text);
            Thread.sleep(20);
            return received.contains(text);
        });
    }

    private void connect() throws Exception {
        subject.open();
        subject.clear();
    }

    private void lock() throws Exception {
        check(subject.acquire(Subject.KEPT, "one"), "the lock was not granted");
        check(!subject.acquire(Subject.KEPT, "two"), "two owners");
        check(!subject.release(Subject.KEPT, "two"), "released by another");
        takeAndGiveBack(Subject.LOCK, "one");
    }

    private void pubsub() throws Exception {
        subject.subscribe(received::add);
        message("before");
    }

    private void pipeline() throws Exception {
        List<?> expected = LongStream.rangeClosed(1, 100).boxed().toList();
        check(subject.count().equals(expected), "another count");
    }

    private void script() throws Exception {
        subject.flushScripts();
        takeAndGiveBack(Subject.LOCK, "one");
    }

    private void fail() throws Exception {
        System.out.println("ready");
        check(System.in.read() == '\n', "no failover");
    }

    private void reconnect() throws Exception {
        until(() -> {
            subject.write();
            return true;
        });
    }

    private void kept() throws Exception {
        check(!subject.acquire(Subject.KEPT, "two"), "the lock is lost");
        check(subject.release(Subject.KEPT, "one"), "the lock is not its owner's");
    }

    private void resubscribe() throws Exception {
        if (subject.losesSubscriptions()) {
            subject.subscribe(received::add);
        }
        message("after");
    }

    public static void main(String[] words) throws Exception {
        String shape = words[1];
        int[] ports = List.of(words).subList(2, words.length).stream().mapToInt(Integer::parseInt).toArray();
        Subject subject = switch (words[0]) {
            case "jedis" -> new JedisSubject(shape, ports);
            case "lettuce" -> new LettuceSubject(shape, ports);
            case "redisson" -> new RedissonSubject(shape, ports);
            case "spring" -> new SpringSubject(shape, ports);
            default -> throw new IllegalArgumentException(words[0]);
        };
        Contract contract = new Contract(subject);
        List<Map.Entry<String, Step>> steps = List.of(
            Map.entry("connect", contract::connect), Map.entry("lock", contract::lock), Map.entry("pubsub", contract::pubsub),
            Map.entry("pipeline", contract::pipeline), Map.entry("script", contract::script), Map.entry("fail", contract::fail),
            Map.entry("reconnect", contract::reconnect), Map.entry("kept", contract::kept),
            Map.entry("relock", () -> contract.takeAndGiveBack(Subject.KEPT, "two")),
            Map.entry("resubscribe", contract::resubscribe));
        for (Map.Entry<String, Step> step : steps) {
            long begin = System.nanoTime();
            try {
                step.getValue().run();
            } catch (Throwable error) {
                System.out.println((step.getKey() + " failed: " + error).replace('\n', ' '));
                Runtime.getRuntime().halt(1);
            }
            if (!step.getKey().equals("fail")) {
                System.out.println(step.getKey() + " ok " + (System.nanoTime() - begin) / 1_000_000 + " ms");
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
