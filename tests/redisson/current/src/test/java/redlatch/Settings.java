package redlatch;

import org.redisson.config.Config;
import org.redisson.config.Protocol;

import java.util.ArrayList;
import java.util.List;

/** Options of the connection between client and server. */
record Settings(Protocol protocol, boolean scriptCache, String password, int database) {

    static final Settings DEFAULT = new Settings(Protocol.RESP2, true, null, 0);

    /** Returns all sixteen combinations. */
    static List<Settings> all() {
        List<Settings> all = new ArrayList<>();
        for (Protocol protocol : Protocol.values()) {
            for (boolean scriptCache : new boolean[] {true, false}) {
                for (String password : new String[] {null, "s3cret"}) {
                    for (int database : new int[] {0, 5}) {
                        all.add(new Settings(protocol, scriptCache, password, database));
                    }
                }
            }
        }
        return all;
    }

    String[] serverOptions() {
        return password == null ? new String[0] : new String[] {"--requirepass", password};
    }

    Config config(int port) {
        Config config = new Config();
        config.setProtocol(protocol).setUseScriptCache(scriptCache).setPassword(password);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setDatabase(database);
        return config;
    }
}
