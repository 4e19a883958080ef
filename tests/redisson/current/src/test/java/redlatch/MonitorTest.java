package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import redlatch.harness.Resp;

import java.util.ArrayList;
import java.util.List;

import static org.junit.jupiter.api.Assertions.*;

/** MONITOR shows each script of a lock and an unlock, followed by every command that the script ran. */
class MonitorTest extends RedissonTest {

    @Test
    void showsScriptsAndWhatTheyDo() throws Exception {
        RLock warmUp = redisson.getLock("warm up");  // so that the scripts are loaded
        warmUp.lock();
        warmUp.unlock();

        RLock lock = redisson.getLock("lock");
        List<String> seen = new ArrayList<>();
        try (Resp monitor = connect()) {
            assertEquals("OK", monitor.call("MONITOR"));
            lock.lock();
            lock.unlock();
            String line;
            do {
                line = monitor.read();
                if (line.contains("\"lock\"") || line.contains("{lock}")) {  // skips PINGs and the end of the warm-up
                    seen.add(line);
                }
            } while (!line.contains("\"DEL\" \"redisson_unlock_latch:{lock}"));
        }

        String client = "[0 127.0.0.1:PORT]";
        String lua = "[0 lua]";
        String owner = "\"OWNER\"";
        String latch = "\"redisson_unlock_latch:{lock}:ID\"";
        assertEquals(List.of(
            client + " \"EVALSHA\" \"SHA\" \"1\" \"lock\" \"30000\" " + owner,
            lua + " \"exists\" \"lock\"",
            lua + " \"hincrby\" \"lock\" " + owner + " \"1\"",
            lua + " \"pexpire\" \"lock\" \"30000\"",
            client + " \"EVALSHA\" \"SHA\" \"3\" \"lock\" \"redisson_lock__channel:{lock}\" " + latch
                + " \"0\" \"30000\" " + owner + " \"PUBLISH\" \"MS\"",
            lua + " \"get\" " + latch,
            lua + " \"hexists\" \"lock\" " + owner,
            lua + " \"hincrby\" \"lock\" " + owner + " \"-1\"",
            lua + " \"del\" \"lock\"",
            lua + " \"PUBLISH\" \"redisson_lock__channel:{lock}\" \"0\"",
            lua + " \"set\" " + latch + " \"1\" \"px\" \"MS\"",
            client + " \"DEL\" " + latch),
            seen.stream().map(MonitorTest::withoutChance).toList());
    }

    private static String withoutChance(String line) {
        return line.replaceFirst("^\\d{10}\\.\\d{6} ", "")
            .replaceFirst("127\\.0\\.0\\.1:\\d+", "127.0.0.1:PORT")
            .replaceAll("\"[0-9a-f]{40}\"", "\"SHA\"")
            .replaceAll("\"[0-9a-f-]{36}:\\d+\"", "\"OWNER\"")
            .replaceAll(":[0-9a-f]{32}\"", ":ID\"")
            .replaceAll("(\"PUBLISH\"|\"px\") \"\\d{4,6}\"", "$1 \"MS\"");
    }
}
