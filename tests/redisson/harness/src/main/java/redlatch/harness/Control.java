package redlatch.harness;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

import static redlatch.harness.Concurrently.eventually;

/**
 * Stages what real Redis leaves to luck, by the SIM.* commands of Redlatch: faults, gates, time and the state of nodes.
 *
 * <p>What a method returns as a {@link Guard} is undone when it is closed. Times are in ms, nodes are numbered from 0, the
 * error of a refused command is thrown as {@link Resp.Error}.
 */
public final class Control implements AutoCloseable {

    private static final int PATIENCE_MS = 20_000;

    private final Resp resp;

    public Control(int port) {
        resp = new Resp(port);
    }

    /** Any command, by its words. */
    public <T> T call(Object... words) {
        return resp.call(words);
    }

    /** No data, faults, gates or states are left, time is real, all nodes run and are masters. */
    public void reset() {
        call("SIM.RUN", "RESET");
        call("SIM.CLOCK", "MODE", "REAL");
    }

    @Override
    public void close() {
        resp.close();
    }

    /** Undone by closing. */
    public interface Guard extends AutoCloseable {
        @Override
        void close();
    }

    private Guard undo(Object... words) {
        return () -> call(words);
    }

    // ---- what is meant -------------------------------------------------------------------------------------------

    /** All of these conditions. Texts are globs. */
    public record Match(List<Object> words) {

        /** A script by its role: {@code rlock.acquire}, {@code fair.*}. */
        public static Match script(String role) {
            return new Match(List.of()).and("SCRIPT", role);
        }

        public static Match command(String name) {
            return new Match(List.of()).and("CMD", name);
        }

        /** Messages of a channel, or the commands that name it. */
        public static Match channel(String name) {
            return new Match(List.of()).and("CHANNEL", name);
        }

        public static Match any() {
            return new Match(List.of());
        }

        /** What CLIENT SETNAME said. */
        public Match client(String name) {
            return and("NAME", name);
        }

        /** {@code uuid:thread} of a lock's owner. */
        public Match owner(String name) {
            return and("OWNER", name);
        }

        public Match key(String name) {
            return and("KEY", name);
        }

        public Match node(int node) {
            return and("NODE", node);
        }

        /** Only the n-th of them, from 1. */
        public Match nth(int n) {
            return and("NTH", n);
        }

        public Match and(Object... clause) {
            return new Match(join(words, List.of(clause)));
        }
    }

    private static List<Object> join(List<?> left, List<?> right) {
        List<Object> all = new ArrayList<>(left);
        all.addAll(right);
        return all;
    }

    // ---- faults --------------------------------------------------------------------------------------------------

    /** A rule at work. Closing takes it away. */
    public final class Fault implements Guard {

        private final Long id;

        private Fault(Match match, Object... action) {
            List<Object> rule = join(join(List.of("SIM.FAULT", "ADD"), match.words), List.of("DO"));
            id = call(join(rule, List.of(action)).toArray());
        }

        /** Each as [event, connection, request, what was done]. */
        private List<List<Object>> allHits() {
            return call("SIM.FAULT", "HITS", id);
        }

        public int hits() {
            return allHits().size();
        }

        /** Ends the connections on which it acted: a connection that lost something stays silent until it is replaced. */
        public void cut() {
            allHits().forEach(hit -> call("CLIENT", "KILL", "ID", hit.get(1)));
        }

        /** Waits until it has acted so often. */
        public void awaitHits(int count) throws Exception {
            eventually(count + " hits", () -> hits() >= count);
        }

        @Override
        public void close() {
            call("SIM.FAULT", "DEL", id);
        }
    }

    /** Any action, by its words. */
    public Fault fault(Match match, Object... action) {
        return new Fault(match, action);
    }

    /** The request is lost, and all that its connection sends later. */
    public Fault dropRequest(Match match) {
        return fault(match, "DROP", "REQUEST");
    }

    /** The request runs; its reply is lost, and all that its connection would receive later. */
    public Fault dropReply(Match match) {
        return fault(match, "DROP", "REPLY");
    }

    public Fault delayReply(Match match, long ms) {
        return fault(match, "DELAY", "REPLY", ms);
    }

    /** The request runs so often; the client gets the last reply. */
    public Fault repeat(Match match, int times) {
        return fault(match, "DUP", times);
    }

    /** Does nothing but count. */
    public Fault watch(Match match) {
        return repeat(match, 1);
    }

    /** The k-th call of the script fails, from 1; what it wrote before stays. */
    public Fault failCall(Match match, int k) {
        return fault(match, "FAIL", "SUBCALL", k);
    }

    /** An error instead of running the request. */
    public Fault refuse(Match match, String error) {
        return fault(match, "ERROR", error, "BEFORE");
    }

    /** The connection ends when the request has run and that many bytes of the reply are sent. */
    public Fault closeAfterBytes(Match match, int bytes) {
        return fault(match, "CLOSE", "BYTES", bytes);
    }

    /** A message to a subscriber is lost. */
    public Fault dropMessage(Match match) {
        return fault(match, "DROP", "PUSH");
    }

    public Fault repeatMessage(Match match, int times) {
        return fault(match, "DUP", "PUSH", times);
    }

    /** The script cache is empty when the request runs. */
    public Fault forgetScripts(Match match) {
        return fault(match, "FORGET", "SCRIPTS");
    }

    /** Adds to a number among a script's ARGV, which begin at 1. */
    public Fault addToArgument(Match match, int place, long summand) {
        return fault(match, "REWRITE", "ARGV", place, "ADD", summand);
    }

    // ---- gates ---------------------------------------------------------------------------------------------------

    /** Where a gate stands. */
    public enum At {
        /** Before the request runs. */
        PRE,
        /** Before its reply is sent. */
        POST,
        /** Before a message is sent to a subscriber. */
        PUSH
    }

    /** Holds what matches. Closing takes it away and lets go what it holds. */
    public final class Gate implements Guard {

        private final Long id;

        private Gate(At at, Match match) {
            id = call(join(join(List.of("SIM.GATE", "ADD"), match.words), List.of("AT", at)).toArray());
        }

        /** Waits until it holds so many; returns their tickets. */
        public List<String> await(int count) {
            List<String> held = call("SIM.GATE", "AWAIT", id, "COUNT", count, "TIMEOUT", PATIENCE_MS);
            if (held.size() < count) {
                throw new AssertionError("the gate holds " + held.size() + " and not " + count);
            }
            return held;
        }

        public void release() {
            call("SIM.GATE", "RELEASE", id);
        }

        public void release(String ticket) {
            call("SIM.GATE", "RELEASE", ticket);
        }

        @Override
        public void close() {
            call("SIM.GATE", "DEL", id);
        }
    }

    public Gate gate(At at, Match match) {
        return new Gate(at, match);
    }

    // ---- time ----------------------------------------------------------------------------------------------------

    /** The server's clock stands still until it is closed, but for {@link #advance}. */
    public Guard stopClock() {
        call("SIM.CLOCK", "MODE", "MANUAL");
        return undo("SIM.CLOCK", "MODE", "REAL");
    }

    /** Time goes on; keys end and timers fire on the way. */
    public void advance(long ms) {
        call("SIM.CLOCK", "ADVANCE", ms);
    }

    /** The clocks of this process jump, and back. Only under {@code redlatch run}. */
    public Guard jumpOwnClock(long ms) {
        setOwnClock(ms);
        return () -> setOwnClock(-ms);
    }

    private void setOwnClock(long ms) {
        long before = System.currentTimeMillis();
        call("SIM.CLOCK", "JUMP", ms, "COMMAND");
        // Not by any deadline: the clock that it would be read from is the one that jumps.
        for (int look = 0; Math.abs(System.currentTimeMillis() - before - ms) > Math.abs(ms) / 2; look++) {
            if (look == 1_000) {
                throw new AssertionError("this clock did not jump");
            }
            LockSupport.parkNanos(5_000_000);
        }
    }

    /** The wall clock of a node jumps, and back. */
    public Guard jump(int node, long ms) {
        call("SIM.CLOCK", "JUMP", ms, "NODE", node);
        return undo("SIM.CLOCK", "JUMP", -ms, "NODE", node);
    }

    /** Clients whose lock scripts told their time, each as [client, ms that it is ahead, samples]. */
    public List<List<Object>> skews() {
        return call("SIM.CLOCK", "SKEW");
    }

    // ---- nodes ---------------------------------------------------------------------------------------------------

    /** Ways in which a node refuses requests. */
    public enum State { OOM, LOADING, READONLY, BUSY, MAXCLIENTS, MASTERDOWN, NOREPLICAS, CLUSTERDOWN }

    public Guard state(int node, State state) {
        call("SIM.NODE", "STATE", node, state, "ON");
        return undo("SIM.NODE", "STATE", node, state, "OFF");
    }

    /** Requests and timers of the node wait. */
    public Guard pause(int node) {
        call("SIM.NODE", "PAUSE", node);
        return undo("SIM.NODE", "RESUME", node);
    }

    /** All connections end and new ones are refused. */
    public Guard stop(int node) {
        call("SIM.NODE", "STOP", node, "KEEP");
        return undo("SIM.NODE", "START", node);
    }

    /** As {@link #stop}, and the data is lost. */
    public Guard stopAndWipe(int node) {
        call("SIM.NODE", "STOP", node, "WIPE");
        return undo("SIM.NODE", "START", node);
    }

    public void replicate(int replica, int master) {
        call("SIM.NODE", "REPLICATE", replica, "OF", master);
    }

    /** No more writes reach the replica, until it is told otherwise. */
    public void cutLink(int replica) {
        call("SIM.NODE", "LINK", replica, "DOWN");
    }

    public void restoreLink(int replica) {
        call("SIM.NODE", "LINK", replica, "UP");
    }

    /** The replica becomes a master, with the data that has reached it. */
    public void promote(int replica) {
        call("SIM.NODE", "PROMOTE", replica);
    }

    /** How many replicas WAIT counts. */
    public Guard acknowledge(int master, int replicas) {
        call("SIM.NODE", "ACK", master, replicas);
        return undo("SIM.NODE", "ACK", master, "REAL");
    }

    // ---- data ----------------------------------------------------------------------------------------------------

    /** The key is gone without a word. */
    public boolean lose(int node, String key) {
        return this.<Long>call("SIM.KEY", "LOSE", key, "NODE", node) == 1;
    }

    /** A resource that checks fencing tokens: takes writes whose token is not smaller than any before. */
    public boolean write(String key, String value, long token) {
        return this.<Long>call("SIM.RUN", "STORE", "WRITE", key, value, "TOKEN", token, "MODE", "GE") == 1;
    }
}
