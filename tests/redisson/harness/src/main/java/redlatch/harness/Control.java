package redlatch.harness;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

import static redlatch.harness.Concurrently.eventually;

/**
 * Controls what real Redis leaves to chance, by the SIM.* commands of Redlatch: faults, gates, time and the state of nodes.
 *
 * <p>A method that returns a {@link Guard} makes a change that the guard undoes when it is closed. Times are in ms, nodes are
 * numbered from 0. A command that fails throws {@link Resp.Error}.
 */
public final class Control implements AutoCloseable {

    private static final int PATIENCE_MS = 20_000;

    private final Resp resp;

    public Control(int port) {
        resp = new Resp(port);
    }

    /** Sends a command and returns its reply. */
    public <T> T call(Object... words) {
        return resp.call(words);
    }

    /** Removes all data, faults, gates and states, sets the clock to real time, and makes all nodes running masters. */
    public void reset() {
        call("SIM.RUN", "RESET");
        call("SIM.CLOCK", "MODE", "REAL");
    }

    @Override
    public void close() {
        resp.close();
    }

    /** A change that is undone when this is closed. */
    public interface Guard extends AutoCloseable {
        @Override
        void close();
    }

    private Guard undo(Object... words) {
        return () -> call(words);
    }

    // ---- matching ------------------------------------------------------------------------------------------------

    /** A conjunction of clauses. Texts are glob patterns. */
    public record Match(List<Object> words) {

        /** Matches a script by its role: {@code rlock.acquire}, {@code fair.*}. */
        public static Match script(String role) {
            return new Match(List.of()).and("SCRIPT", role);
        }

        public static Match command(String name) {
            return new Match(List.of()).and("CMD", name);
        }

        /** Matches messages on a channel, and commands that name it. */
        public static Match channel(String name) {
            return new Match(List.of()).and("CHANNEL", name);
        }

        public static Match any() {
            return new Match(List.of());
        }

        /** Adds a clause: the name that CLIENT SETNAME has set. */
        public Match client(String name) {
            return and("NAME", name);
        }

        /** Adds a clause: the owner of a lock, {@code uuid:thread}. */
        public Match owner(String name) {
            return and("OWNER", name);
        }

        public Match key(String name) {
            return and("KEY", name);
        }

        public Match node(int node) {
            return and("NODE", node);
        }

        /** Adds a clause: only the n-th that matches all others, from 1. */
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

    /** An active fault rule. Closing removes it. */
    public final class Fault implements Guard {

        private final Long id;

        private Fault(Match match, Object... action) {
            List<Object> rule = join(join(List.of("SIM.FAULT", "ADD"), match.words), List.of("DO"));
            id = call(join(rule, List.of(action)).toArray());
        }

        /** Returns a row for each time the rule was applied: [event, connection, request, action]. */
        private List<List<Object>> allHits() {
            return call("SIM.FAULT", "HITS", id);
        }

        public int hits() {
            return allHits().size();
        }

        /** Kills the connections on which the rule was applied: after a loss, a connection receives nothing until it is replaced. */
        public void cut() {
            allHits().forEach(hit -> call("CLIENT", "KILL", "ID", hit.get(1)));
        }

        /** Waits until the rule was applied {@code count} times. */
        public void awaitHits(int count) throws Exception {
            eventually(count + " hits", () -> hits() >= count);
        }

        @Override
        public void close() {
            call("SIM.FAULT", "DEL", id);
        }
    }

    /** Adds a rule with any action. */
    public Fault fault(Match match, Object... action) {
        return new Fault(match, action);
    }

    /** Loses the request and everything that its connection sends later. */
    public Fault dropRequest(Match match) {
        return fault(match, "DROP", "REQUEST");
    }

    /** Runs the request, and loses its reply and everything that its connection would receive later. */
    public Fault dropReply(Match match) {
        return fault(match, "DROP", "REPLY");
    }

    public Fault delayReply(Match match, long ms) {
        return fault(match, "DELAY", "REPLY", ms);
    }

    /** Runs the request {@code times} times; the client receives the last reply. */
    public Fault repeat(Match match, int times) {
        return fault(match, "DUP", times);
    }

    /** Counts matching requests and changes nothing. */
    public Fault watch(Match match) {
        return repeat(match, 1);
    }

    /** Makes the k-th call of the script fail, from 1; earlier writes stay. */
    public Fault failCall(Match match, int k) {
        return fault(match, "FAIL", "SUBCALL", k);
    }

    /** Replies with an error instead of running the request. */
    public Fault refuse(Match match, String error) {
        return fault(match, "ERROR", error, "BEFORE");
    }

    /** Closes the connection once the request has run and {@code bytes} bytes of the reply are sent. */
    public Fault closeAfterBytes(Match match, int bytes) {
        return fault(match, "CLOSE", "BYTES", bytes);
    }

    /** Loses a message to a subscriber. */
    public Fault dropMessage(Match match) {
        return fault(match, "DROP", "PUSH");
    }

    public Fault repeatMessage(Match match, int times) {
        return fault(match, "DUP", "PUSH", times);
    }

    /** Empties the script cache before the request runs. */
    public Fault forgetScripts(Match match) {
        return fault(match, "FORGET", "SCRIPTS");
    }

    /** Adds {@code summand} to the number at an index of a script's ARGV, from 1. */
    public Fault addToArgument(Match match, int index, long summand) {
        return fault(match, "REWRITE", "ARGV", index, "ADD", summand);
    }

    // ---- gates ---------------------------------------------------------------------------------------------------

    /** The point at which a gate holds. */
    public enum At {
        /** Before the request runs. */
        PRE,
        /** Before its reply is sent. */
        POST,
        /** Before a message is sent to a subscriber. */
        PUSH
    }

    /** Holds what matches. Closing removes the gate and releases what it holds. */
    public final class Gate implements Guard {

        private final Long id;

        private Gate(At at, Match match) {
            id = call(join(join(List.of("SIM.GATE", "ADD"), match.words), List.of("AT", at)).toArray());
        }

        /** Waits until the gate holds {@code count} items; returns their tickets. */
        public List<String> await(int count) {
            List<String> held = call("SIM.GATE", "AWAIT", id, "COUNT", count, "TIMEOUT", PATIENCE_MS);
            if (held.size() < count) {
                throw new AssertionError("the gate holds " + held.size() + ", expected " + count);
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

    /** Stops the server's clock; only {@link #advance} moves it. */
    public Guard stopClock() {
        call("SIM.CLOCK", "MODE", "MANUAL");
        return undo("SIM.CLOCK", "MODE", "REAL");
    }

    /** Advances the clock by {@code ms}; keys expire and timers fire on the way. */
    public void advance(long ms) {
        call("SIM.CLOCK", "ADVANCE", ms);
    }

    /** Makes the clocks of this process jump by {@code ms}; the guard makes them jump back. Works only under {@code redlatch run}. */
    public Guard jumpOwnClock(long ms) {
        setOwnClock(ms);
        return () -> setOwnClock(-ms);
    }

    private void setOwnClock(long ms) {
        long before = System.currentTimeMillis();
        call("SIM.CLOCK", "JUMP", ms, "COMMAND");
        // Counts polls instead of setting a deadline, because the clock to measure it by is the one that jumps.
        for (int look = 0; Math.abs(System.currentTimeMillis() - before - ms) > Math.abs(ms) / 2; look++) {
            if (look == 1_000) {
                throw new AssertionError("this clock did not jump");
            }
            LockSupport.parkNanos(5_000_000);
        }
    }

    /** Makes the wall clock of a node jump by {@code ms}; the guard makes it jump back. */
    public Guard jump(int node, long ms) {
        call("SIM.CLOCK", "JUMP", ms, "NODE", node);
        return undo("SIM.CLOCK", "JUMP", -ms, "NODE", node);
    }

    /** Returns the clock skew of clients, measured from their lock scripts: [client, ms ahead of the node, samples]. */
    public List<List<Object>> skews() {
        return call("SIM.CLOCK", "SKEW");
    }

    // ---- nodes ---------------------------------------------------------------------------------------------------

    /** States in which a node refuses requests. */
    public enum State { OOM, LOADING, READONLY, BUSY, MAXCLIENTS, MASTERDOWN, NOREPLICAS, CLUSTERDOWN }

    public Guard state(int node, State state) {
        call("SIM.NODE", "STATE", node, state, "ON");
        return undo("SIM.NODE", "STATE", node, state, "OFF");
    }

    /** Pauses a node: its requests and timers wait. */
    public Guard pause(int node) {
        call("SIM.NODE", "PAUSE", node);
        return undo("SIM.NODE", "RESUME", node);
    }

    /** Stops a node: it closes all connections and refuses new ones. */
    public Guard stop(int node) {
        call("SIM.NODE", "STOP", node, "KEEP");
        return undo("SIM.NODE", "START", node);
    }

    /** Stops a node like {@link #stop}, and loses its data. */
    public Guard stopAndWipe(int node) {
        call("SIM.NODE", "STOP", node, "WIPE");
        return undo("SIM.NODE", "START", node);
    }

    public void replicate(int replica, int master) {
        call("SIM.NODE", "REPLICATE", replica, "OF", master);
    }

    /** Stops replication to a replica until {@link #restoreLink}. */
    public void cutLink(int replica) {
        call("SIM.NODE", "LINK", replica, "DOWN");
    }

    public void restoreLink(int replica) {
        call("SIM.NODE", "LINK", replica, "UP");
    }

    /** Makes a replica a master, with the data that has reached it. */
    public void promote(int replica) {
        call("SIM.NODE", "PROMOTE", replica);
    }

    /** Sets how many replicas WAIT counts on a master. */
    public Guard acknowledge(int master, int replicas) {
        call("SIM.NODE", "ACK", master, replicas);
        return undo("SIM.NODE", "ACK", master, "REAL");
    }

    // ---- data ----------------------------------------------------------------------------------------------------

    /** Removes a key without an event or a message. Returns whether it existed. */
    public boolean lose(int node, String key) {
        return this.<Long>call("SIM.KEY", "LOSE", key, "NODE", node) == 1;
    }

    /** Writes to a resource that checks fencing tokens. Returns whether it accepts: the token is at least as large as all before. */
    public boolean write(String key, String value, long token) {
        return this.<Long>call("SIM.RUN", "STORE", "WRITE", key, value, "TOKEN", token, "MODE", "GE") == 1;
    }
}
