// Uses the locks of node-redlock for a while, on one node and on three, and prints how often each was granted.
//
//     node mix.js SECONDS PORT...

import Redis from "ioredis";
import redlock from "redlock";

const { default: Redlock, ExecutionError } = redlock.default ? redlock : { default: redlock, ...redlock };
const [seconds, ...ports] = process.argv.slice(2).map(Number);
const end = Date.now() + seconds * 1000;
const granted = {};
const failed = {};
const count = (counts, name) => (counts[name] = (counts[name] ?? 0) + 1);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const settings = { retryCount: 3, retryDelay: 10, retryJitter: 5, automaticExtensionThreshold: 100 };

const uses = {
  // Several resources at once, extended by hand.
  async one(client) {
    const locks = new Redlock([client[0]], settings);
    let lock = await locks.acquire(Math.random() < 0.3 ? ["mix:a", "mix:b"] : ["mix:a"], 2000);
    await sleep(Math.random() * 6);
    if (Math.random() < 0.2) lock = await lock.extend(2000);
    await lock.release();
  },
  // A majority of three masters.
  async three(client) {
    const lock = await new Redlock(client, settings).acquire(["mix:three"], 2000);
    await sleep(Math.random() * 6);
    await lock.release();
  },
  // Extended by the library while the work goes on.
  async using(client) {
    await new Redlock(client, settings).using(["mix:using"], 300, async () => {
      await sleep(Math.random() < 0.05 ? 600 : Math.random() * 6);
    });
  },
};

async function work() {
  const client = ports.map((port) => new Redis(port, "127.0.0.1"));
  while (Date.now() < end) {
    const names = Object.keys(uses);
    const name = names[Math.floor(Math.random() * names.length)];
    try {
      await uses[name](client);
      count(granted, name);
    } catch (error) {
      if (error.name !== "ExecutionError") count(failed, `${name}: ${error}`);
    }
  }
  client.forEach((connection) => connection.disconnect());
}

await Promise.all([1, 2, 3, 4].map(work));
for (const [name, times] of Object.entries(granted)) console.log(`node-redlock ${name}: granted ${times}`);
for (const [why, times] of Object.entries(failed)) console.log(`node-redlock failed ${times} times: ${why}`);
