package redlatch;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import static org.junit.jupiter.api.Assertions.*;

/** docs/redisson-under-faults.md names exactly the tests of this module. */
class DocumentationTest {

    private static final Path PAGE = Path.of("../../docs/redisson-under-faults.md");

    @Test
    void pageNamesEachTest() throws Exception {
        Set<String> named = Pattern.compile("`(\\w+Test#\\w+)`").matcher(Files.readString(PAGE)).results()
            .map((MatchResult found) -> found.group(1)).collect(Collectors.toCollection(TreeSet::new));
        Set<String> present = Stream.of(LostReplyTest.class, LostMessageTest.class, RefusalTest.class,
                ReplicationTest.class, LeaseTest.class, SkewTest.class, RedLockTest.class, FencingTest.class, ClusterTest.class,
                SentinelTest.class)
            .flatMap(tests -> Stream.of(tests.getDeclaredMethods()))
            .filter(test -> test.isAnnotationPresent(Test.class) || test.isAnnotationPresent(ParameterizedTest.class))
            .map(test -> test.getDeclaringClass().getSimpleName() + "#" + test.getName())
            .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(String.join("\n", present), String.join("\n", named));
    }
}
