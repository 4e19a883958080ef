package mix;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Uses the locks of a library from several threads for a while, and prints how often each was granted. */
public final class Mix {

    /** One use of a lock: returns whether it was granted. */
    interface Use {
        boolean once(Random random) throws Exception;
    }

    private static final int THREADS = 4;

    private Mix() {
    }

    public static void main(String[] args) throws Exception {
        String library = args[0];
        int seconds = Integer.parseInt(args[1]);
        int[] ports = new int[args.length - 2];
        for (int i = 0; i < ports.length; i++) {
            ports[i] = Integer.parseInt(args[i + 2]);
        }
        try (AutoCloseable closing = switch (library) {
            case "redisson" -> new RedissonLocks(ports).run(seconds);
            case "shedlock" -> new ShedLocks(ports[0]).run(seconds);
            case "take" -> Take.run(ports[0]);
            case "spring" -> new SpringLocks(ports[0]).run(seconds);
            default -> throw new IllegalArgumentException(library);
        }) {
            System.out.flush();
        }
        System.exit(0);
    }

    /** Lets each thread choose a use at random, again and again. */
    static void run(String library, int seconds, Map<String, Use> uses) throws InterruptedException {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        List<String> names = List.copyOf(new TreeMap<>(uses).keySet());
        Map<String, AtomicLong> granted = new ConcurrentHashMap<>();
        Map<String, AtomicLong> failed = new ConcurrentHashMap<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Random random = new Random(i);
            Thread thread = new Thread(() -> {
                while (System.nanoTime() < end) {
                    String name = names.get(random.nextInt(names.size()));
                    try {
                        if (uses.get(name).once(random)) {
                            granted.computeIfAbsent(name, any -> new AtomicLong()).incrementAndGet();
                        }
                    } catch (Exception e) {
                        failed.computeIfAbsent(name + ": " + e, any -> new AtomicLong()).incrementAndGet();
                    }
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        names.forEach(name -> System.out.printf("%s %s: granted %s%n", library, name, granted.getOrDefault(name, new AtomicLong())));
        failed.forEach((why, count) -> System.out.printf("%s failed %s times: %s%n", library, count, why));
    }
}
