package redlatch.harness;

import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Runs tasks in separate threads: the thread is part of the identity of a lock's owner. */
public final class Concurrently {

    private static final int PATIENCE_S = 55;

    private Concurrently() {
    }

    public interface Body {
        void run() throws Exception;
    }

    /** A running task and its result. */
    public static final class Task<T> extends CompletableFuture<T> {

        /** Methods in which a thread waits: those of locks and semaphores, and that of the count-down latch. */
        private static final Set<String> GATES =
            Set.of("java.util.concurrent.Semaphore", "org.redisson.misc.ReclosableLatch");

        private static final Set<Thread.State> WAITING = Set.of(Thread.State.WAITING, Thread.State.TIMED_WAITING);

        private final Thread thread;

        private Task(Callable<T> body) {
            thread = new Thread(() -> {
                try {
                    complete(body.call());
                } catch (Throwable e) {
                    completeExceptionally(e);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        public void interrupt() {
            thread.interrupt();
        }

        /** Returns whether the thread waits for a wake-up rather than for a reply. A message published earlier could be missed. */
        public boolean isParked() {
            return WAITING.contains(thread.getState())
                && Stream.of(thread.getStackTrace()).anyMatch(frame -> GATES.contains(frame.getClassName()));
        }
    }

    /** Runs the task in a new thread. */
    public static <T> Task<T> spawn(Callable<T> task) {
        return new Task<>(task);
    }

    public static Task<Void> spawn(Body body) {
        return spawn(() -> {
            body.run();
            return null;
        });
    }

    /** Runs the task in a new thread and waits for its end. */
    public static <T> T elsewhere(Callable<T> task) {
        return spawn(task).orTimeout(PATIENCE_S, TimeUnit.SECONDS).join();
    }

    public static void elsewhere(Body body) {
        spawn(body).orTimeout(PATIENCE_S, TimeUnit.SECONDS).join();
    }

    /** Runs a task in {@code threads} threads, started at the same moment, and returns the results in order. */
    public static <T> List<T> together(int threads, Callable<T> task) {
        CountDownLatch ready = new CountDownLatch(threads);
        List<Task<T>> results = IntStream.range(0, threads).mapToObj(i -> spawn(() -> {
            ready.countDown();
            ready.await();
            return task.call();
        })).toList();
        return results.stream().map(r -> r.orTimeout(PATIENCE_S, TimeUnit.SECONDS).join()).toList();
    }

    public static void together(int threads, Body body) {
        together(threads, () -> {
            body.run();
            return null;
        });
    }

    /** Waits until the condition holds. */
    public static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("never came true: " + what);
            }
            Thread.sleep(2);
        }
    }
}
