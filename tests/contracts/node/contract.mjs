// ioredis and node-redis, as tests/contracts/README.md describes it: contract.mjs ioredis|node-redis SHAPE PORT...
import { createInterface } from "node:readline";
import { strict as assert } from "node:assert";

const [name, shape, ...ports] = process.argv.slice(2);
const KEPT = "{contract}:kept";
const LOCK = "{contract}:lock";
const CHANNEL = "{contract}:news";
const COUNTER = "{contract}:counter";
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const nodes = ports.map((port) => ({ host: "127.0.0.1", port: Number(port) }));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// What the steps need of a client. Of replicas `open` takes the one whose role is master.
async function ioredis() {
  const { default: Redis } = await import("ioredis");
  const ofMaster = async () => {
    for (const node of nodes) {
      const found = new Redis({ ...node, retryStrategy: () => null, lazyConnect: true });
      found.on("error", () => {});
      try {
        await found.connect();
        if ((await found.role())[0] === "master") return found;
      } catch {}
      found.disconnect();
    }
    throw new Error("no master answers");
  };
  const open = {
    single: async () => new Redis(nodes[0]),
    replicas: ofMaster,
    cluster: async () => new Redis.Cluster(nodes),
    sentinel: async () => new Redis({ sentinels: nodes, name: "mymaster" }),
  }[shape];
  return {
    async open() {
      const client = await open();
      client.on("error", () => {});
      client.defineCommand("release", { numberOfKeys: 1, lua: RELEASE });
      return client;
    },
    acquire: async (client, key, token) => (await client.set(key, token, "PX", 60000, "NX")) === "OK",
    release: (client, key, token) => client.release(key, token),
    clear: (client) => client.del(KEPT, LOCK, COUNTER),
    async subscribe(listen) {
      const subscriber = await open();
      subscriber.on("error", () => {});
      await subscriber.subscribe(CHANNEL);
      subscriber.on("message", (_, text) => listen(text));
    },
    publish: (client, text) => client.publish(CHANNEL, text),
    async count(client) {
      const pipeline = client.pipeline();
      for (let i = 0; i < 100; i++) pipeline.incr(COUNTER);
      return (await pipeline.exec()).map(([, value]) => value);
    },
    flush: (client) => (shape === "cluster" ? Promise.all(client.nodes("master").map((node) => node.script("FLUSH"))) : client.script("FLUSH")),
    write: (client) => client.set(COUNTER, 1),
  };
}

async function nodeRedis() {
  const redis = await import("redis");
  const release = redis.defineScript({
    SCRIPT: RELEASE,
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, key, token) {
      parser.pushKey(key);
      parser.push(token);
    },
    transformReply: (reply) => reply,
  });
  const scripts = { release };
  const connected = async (client) => {
    client.on("error", () => {});
    await client.connect();
    return client;
  };
  const ofMaster = async () => {
    for (const socket of nodes) {
      const found = redis.createClient({ socket: { ...socket, reconnectStrategy: false }, scripts, disableOfflineQueue: true });
      try {
        await connected(found);
        if ((await found.sendCommand(["ROLE"]))[0] === "master") return found;
        found.destroy();
      } catch {}
    }
    throw new Error("no master answers");
  };
  const open = {
    single: () => connected(redis.createClient({ socket: nodes[0], scripts })),
    replicas: ofMaster,
    cluster: () => connected(redis.createCluster({ rootNodes: nodes.map((socket) => ({ socket })), scripts })),
    sentinel: () => connected(redis.createSentinel({ name: "mymaster", sentinelRootNodes: nodes, scripts, nodeClientOptions: {}, scanInterval: 500 })),
  }[shape];
  return {
    open,
    acquire: async (client, key, token) => (await client.set(key, token, { condition: "NX", expiration: { type: "PX", value: 60000 } })) === "OK",
    release: (client, key, token) => client.release(key, token),
    clear: (client) => client.del([KEPT, LOCK, COUNTER]),
    async subscribe(listen) {
      const subscriber = await open();
      await subscriber.subscribe(CHANNEL, listen);
    },
    publish: (client, text) => client.publish(CHANNEL, text),
    count(client) {
      const pipeline = client.multi();
      for (let i = 0; i < 100; i++) pipeline.incr(COUNTER);
      return pipeline.execAsPipeline();
    },
    async flush(client) {
      if (shape !== "cluster") return client.scriptFlush();
      return Promise.all(client.masters.map(async (master) => (await client.nodeClient(master)).scriptFlush()));
    },
    write: (client) => client.set(COUNTER, 1),
  };
}

async function until(what) {
  const end = Date.now() + 30000;
  for (;;) {
    try {
      if (await Promise.race([what(), pause(2000)])) return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    if (Date.now() > end) throw new Error("not within 30 s");
    await pause(50);
  }
}

const library = await { ioredis, "node-redis": nodeRedis }[name]();
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const received = [];
let client;
const acquire = (key, token) => library.acquire(client, key, token);
const release = (key, token) => library.release(client, key, token);
const message = (text) =>
  until(async () => {
    await library.publish(client, text);
    await pause(20);
    return received.includes(text);
  });
const takesAndGivesBack = async (key, token) => assert(((await acquire(key, token)) && (await release(key, token))) === 1);

const steps = {
  async connect() {
    client = await library.open();
    await library.clear(client);
  },
  async lock() {
    assert(await acquire(KEPT, "one"));
    assert(!(await acquire(KEPT, "two")));
    assert.equal(await release(KEPT, "two"), 0);
    await takesAndGivesBack(LOCK, "one");
  },
  async pubsub() {
    await library.subscribe((text) => received.push(text));
    await message("before");
  },
  async pipeline() {
    assert.deepEqual(
      await library.count(client),
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
  },
  async script() {
    await library.flush(client);
    await takesAndGivesBack(LOCK, "one");
  },
  async fail() {
    console.log("ready");
    await lines.next();
  },
  reconnect: () =>
    until(async () => {
      if (shape === "replicas") client = await library.open();
      return library.write(client);
    }),
  async kept() {
    assert(!(await acquire(KEPT, "two")));
    assert.equal(await release(KEPT, "one"), 1);
  },
  relock: () => takesAndGivesBack(KEPT, "two"),
  async resubscribe() {
    if (shape === "replicas") await library.subscribe((text) => received.push(text)); // another server
    await message("after");
  },
};

process.on("unhandledRejection", () => {});
for (const [step, run] of Object.entries(steps)) {
  const begin = performance.now();
  try {
    await run();
    if (step !== "fail") console.log(`${step} ok ${Math.round(performance.now() - begin)} ms`);
  } catch (error) {
    console.log(`${step} failed: ${error}`.replaceAll("\n", " "));
    process.exit(1);
  }
}
process.exit(0);
