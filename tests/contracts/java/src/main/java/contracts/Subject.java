package contracts;

import java.util.List;
import java.util.function.Consumer;

/** What the steps need of a client library. Owners are names; a lock that is not granted is no error. */
interface Subject {

    String KEPT = "{contract}:kept";
    String LOCK = "{contract}:lock";
    String CHANNEL = "{contract}:news";
    String COUNTER = "{contract}:counter";
    String RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

    /** Connects, also again after a failover if the library has no way to follow the replicas of a master. */
    void open() throws Exception;

    /** Deletes what an earlier run has left. */
    void clear();

    boolean acquire(String lock, String owner) throws Exception;

    /** Returns whether the owner held the lock. */
    boolean release(String lock, String owner) throws Exception;

    /** Calls the listener with each message, as long as the library keeps the subscription. */
    void subscribe(Consumer<String> listener) throws Exception;

    void publish(String message) throws Exception;

    /** Sends 100 INCR in one pipeline. */
    List<?> count() throws Exception;

    void flushScripts() throws Exception;

    void write() throws Exception;

    /** Whether a subscription ends with its connection, so that a program has to subscribe again. */
    default boolean losesSubscriptions() {
        return false;
    }
}
