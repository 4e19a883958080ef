package redlatch.harness;

import java.util.concurrent.locks.LockSupport;

/** A counter that always loses increments when two threads use it at once. */
public final class Counter {

    private volatile int value;

    public void increment() {
        int seen = value;
        LockSupport.parkNanos(1_000);
        value = seen + 1;
    }

    public int value() {
        return value;
    }
}
