package redlatch;

import org.junit.jupiter.api.Test;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RScript.Mode;
import org.redisson.api.RScript.ReturnType;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;

import java.util.List;

import static org.junit.jupiter.api.Assertions.*;

/** Custom scripts and functions. */
class ScriptTest extends RedissonTest {

    private RScript script() {
        return redisson.getScript(StringCodec.INSTANCE);
    }

    private <T> T eval(Mode mode, ReturnType type, String lua, Object... args) {
        return script().eval(mode, lua, type, List.of("key"), args);
    }

    @Test
    void repliesConvertAsInRedis() {
        assertEquals(3L, this.<Long>eval(Mode.READ_WRITE, ReturnType.LONG, "return 3.99"));
        assertEquals("3.99", eval(Mode.READ_WRITE, ReturnType.STRING, "return tostring(3.99)"));
        assertEquals(true, eval(Mode.READ_WRITE, ReturnType.BOOLEAN, "return true"));
        assertNull(eval(Mode.READ_WRITE, ReturnType.STRING, "return redis.call('get', KEYS[1])"));
        assertEquals(List.of(1L, "two", List.of(3L)),
            eval(Mode.READ_WRITE, ReturnType.LIST, "return {1, 'two', {3}, nil, 5}"));
        assertEquals("9.2233720368548e+16", eval(Mode.READ_WRITE, ReturnType.STRING, "return 92233720368547758 .. ''"));
        assertEquals("5", eval(Mode.READ_WRITE, ReturnType.STRING,
            "redis.call('set', KEYS[1], ARGV[1] + ARGV[2]) return redis.call('get', KEYS[1])", 2, 3));
    }

    @Test
    void librariesAreThere() {
        assertEquals("{\"o\":\"me\",\"c\":1}", eval(Mode.READ_WRITE, ReturnType.STRING,
            "local t = cjson.decode(ARGV[1]) t.c = t.c + 1 "
                + "return '{\"o\":' .. cjson.encode(t.o) .. ',\"c\":' .. cjson.encode(t.c) .. '}'",
            "{\"o\":\"me\",\"c\":0}"));
        assertEquals(List.of("abc", 7L, 16L), eval(Mode.READ_WRITE, ReturnType.LIST,
            "return {struct.unpack('Lc0I', struct.pack('Lc0I', 3, 'abc', ARGV[1]))}", 7));
        assertEquals(List.of(1L, "x"), eval(Mode.READ_WRITE, ReturnType.LIST,
            "return cmsgpack.unpack(cmsgpack.pack({1, 'x'}))"));
        assertEquals(12L, this.<Long>eval(Mode.READ_WRITE, ReturnType.LONG, "return bit.bor(4, 8)"));
        assertEquals("a9993e364706816aba3e25717850c26c9cd0d89d",
            eval(Mode.READ_WRITE, ReturnType.STRING, "return redis.sha1hex('abc')"));
    }

    @Test
    void errorsComeBack() {
        assertFails("WRONGTYPE", "redis.call('lpush', KEYS[1], 'x') return redis.call('get', KEYS[1])");
        assertFails("attempt to compare", "return nil < 1");
        assertFails("nonexistent global variable 'typo'", "return typo");
        assertFails("MY own error", "return redis.error_reply('MY own error')");
        // A small "unknown" would make Redisson send the script again, for ever.
        assertFails("ERR Unknown ", "return redis.call('nosuchcommand')");
        assertFails("too many results to unpack", "local t = {} for i = 1, 8000 do t[i] = i end return {unpack(t)}");
        assertEquals("caught", eval(Mode.READ_WRITE, ReturnType.STRING,
            "local r = redis.pcall('incr') if r.err then return 'caught' end"));
    }

    private void assertFails(String text, String lua) {
        RedisException e = assertThrows(RedisException.class, () -> eval(Mode.READ_WRITE, ReturnType.STRING, lua));
        assertTrue(e.getMessage().contains(text), e.getMessage());
    }

    @Test
    void readOnlyScriptsCannotWrite() {
        assertEquals(0L, this.<Long>eval(Mode.READ_ONLY, ReturnType.LONG, "return redis.call('exists', KEYS[1])"));
        RedisException e = assertThrows(RedisException.class,
            () -> eval(Mode.READ_ONLY, ReturnType.LONG, "return redis.call('incr', KEYS[1])"));
        assertTrue(e.getMessage().contains("Write commands are not allowed from read-only scripts"), e.getMessage());
        assertEquals(0L, this.<Long>ask("EXISTS", "key"));
    }

    @Test
    void scriptsAreLoadedAndFlushed() {
        String sha = script().scriptLoad("return ARGV[1]");
        assertEquals(List.of(true, false), script().scriptExists(sha, "0".repeat(40)));
        assertEquals("x", script().evalSha(Mode.READ_WRITE, sha, ReturnType.STRING, List.of(), "x"));
        ask("FLUSHALL");
        assertEquals(List.of(true), script().scriptExists(sha), "FLUSHALL keeps the scripts");
        RLock lock = redisson.getLock("lock");
        lock.lock();
        script().scriptFlush();
        assertEquals(List.of(false), script().scriptExists(sha));
        assertThrows(RedisException.class,
            () -> script().evalSha(Mode.READ_WRITE, sha, ReturnType.STRING, List.of(), "x"));
        lock.unlock();  // loads the lock's scripts again
        assertFalse(lock.isLocked());
    }
}
