package redlatch.harness;

import java.util.concurrent.locks.LockSupport;

/** A counter that surely loses counts when two threads are in it at once. */
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
