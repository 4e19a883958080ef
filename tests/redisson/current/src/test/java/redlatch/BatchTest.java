package redlatch;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.redisson.api.BatchOptions;
import org.redisson.api.BatchOptions.ExecutionMode;
import org.redisson.api.RBatch;
import org.redisson.api.RMap;
import org.redisson.api.RTransaction;
import org.redisson.api.TransactionOptions;
import org.redisson.client.RedisException;
import org.redisson.transaction.TransactionException;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static org.junit.jupiter.api.Assertions.*;
import static redlatch.harness.Concurrently.*;

/** Pipelines, MULTI/EXEC, and transactions made of both. */
class BatchTest extends RedissonTest {

    @ParameterizedTest
    @EnumSource
    void everyModeReturnsTheResultsInOrder(ExecutionMode mode) {
        RBatch batch = redisson.createBatch(BatchOptions.defaults().executionMode(mode));
        batch.getAtomicLong("counter").incrementAndGetAsync();
        batch.getAtomicLong("counter").addAndGetAsync(10);
        batch.getMap("map").putAsync("k", "v1");                       // a script
        batch.getMap("map").putAsync("k", "v2");                       // the same one
        batch.getScoredSortedSet("zset").addAsync(1.5, "member");
        batch.getMap("map").getAsync("k");
        List<?> responses = batch.execute().getResponses();
        assertEquals(Arrays.asList(1L, 11L, null, "v1", true, "v2"), responses);
    }

    @Test
    void batchOfHundreds() {
        RBatch batch = redisson.createBatch();
        for (int i = 0; i < 500; i++) {
            batch.getMap("map").fastPutIfAbsentAsync("k" + i, i);
        }
        assertEquals(500, batch.execute().getResponses().size());
        assertEquals(500, redisson.getMap("map").size());
    }

    @ParameterizedTest
    @EnumSource(names = {"IN_MEMORY", "IN_MEMORY_ATOMIC"})
    void resultsCanBeSkipped(ExecutionMode mode) throws Exception {
        RBatch batch = redisson.createBatch(BatchOptions.defaults().executionMode(mode).skipResult());
        for (int i = 0; i < 100; i++) {
            batch.getAtomicLong("counter").incrementAndGetAsync();
        }
        assertEquals(List.of(), batch.execute().getResponses());
        eventually("all were executed", () -> redisson.getAtomicLong("counter").get() == 100);
        redisson.getLock("lock").lock();  // fails if a reply was left in a connection
        redisson.getLock("lock").unlock();
    }

    @Test
    void oneFailureDoesNotStopTheOthers() {
        redisson.getBucket("text").set("not a number");
        RBatch batch = redisson.createBatch();
        batch.getAtomicLong("text").incrementAndGetAsync();
        batch.getAtomicLong("counter").incrementAndGetAsync();
        assertThrows(RedisException.class, batch::execute);
        assertEquals(1, redisson.getAtomicLong("counter").get());
    }

    @Test
    void transactionIsAllOrNothing() throws Exception {
        redisson.getBucket("bucket").set("old");
        RTransaction transaction = redisson.createTransaction(TransactionOptions.defaults());
        transaction.getBucket("bucket").set("new");
        transaction.getMap("map").put("k", "v");
        transaction.getSet("set").add("member");
        assertEquals("new", transaction.getBucket("bucket").get());
        assertEquals("old", other.getBucket("bucket").get());
        assertEquals(0, other.getMap("map").size());
        transaction.commit();
        assertEquals("new", other.getBucket("bucket").get());
        assertEquals(Map.of("k", "v"), other.getMap("map").readAllMap());
        assertEquals(Set.of("member"), other.getSet("set").readAll());
        eventually("no lock of the transaction is left", () -> ask("DBSIZE").equals(3L));
    }

    @Test
    void rollbackLeavesNothing() throws Exception {
        RTransaction transaction = redisson.createTransaction(TransactionOptions.defaults());
        transaction.getMap("map").put("k", "v");
        transaction.getBucket("bucket").set("new");
        transaction.rollback();
        eventually("nothing is left", () -> ask("DBSIZE").equals(0L));
    }

    @Test
    void transactionsOnOneKeyWaitForEachOther() throws Exception {
        RMap<String, Integer> map = redisson.getMap("map");
        map.put("k", 0);
        together(8, () -> {
            RTransaction transaction = redisson.createTransaction(TransactionOptions.defaults());
            RMap<String, Integer> mine = transaction.getMap("map");
            mine.put("k", 1);
            transaction.commit();
        });
        assertEquals(1, map.get("k"));
        eventually("only the map is left", () -> ask("DBSIZE").equals(1L));
    }

    @Test
    void transactionThatTakesTooLongFails() throws Exception {
        RTransaction transaction =
            redisson.createTransaction(TransactionOptions.defaults().timeout(100, MILLISECONDS));
        transaction.getBucket("bucket").set("new");
        eventually("its locks have expired", () -> ask("DBSIZE").equals(0L));
        assertThrows(TransactionException.class, transaction::commit);
        assertFalse(redisson.getBucket("bucket").isExists());
    }
}
