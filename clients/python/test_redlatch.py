"""Tests of the Python client.

    python3 -m unittest discover clients/python      (REDLATCH: the binary, by default target/release/redlatch)
"""

import os
import pathlib
import re
import subprocess
import threading
import unittest

from redlatch import Control, Refused

BINARY = os.environ.get("REDLATCH", pathlib.Path(__file__).parents[2] / "target/release/redlatch")


class ControlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [BINARY, "--port", "0", "--port", "0", "--save", ""]
        cls.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls._stop)
        lines = [cls.server.stdout.readline() for _ in range(2)]
        cls.ports = [int(line.rsplit(":", 1)[1]) for line in lines]

    @classmethod
    def _stop(cls):
        cls.server.kill()
        cls.server.wait()
        cls.server.stdout.close()

    def setUp(self):
        self.control, self.app, self.other = (Control(self.ports[0]) for _ in range(3))
        for connection in (self.control, self.app, self.other):
            self.addCleanup(connection.close)
        self.control.reset()
        self.app.call("CLIENT SETNAME app")

    def later(self, connection, words):
        """Sends a command from a thread; the returned function waits for the reply."""
        replies = []
        thread = threading.Thread(target=lambda: replies.append(connection.call(words)), daemon=True)
        thread.start()

        def reply():
            thread.join(20)
            return replies[0]

        return reply

    def test_values_come_as_they_are(self):
        self.assertEqual(self.app.call("SET k v"), "OK")
        self.assertEqual(self.app.call("MGET k nothing"), ["v", None])
        self.assertEqual(self.app.call(["SET", "k", "two words"]), "OK")
        self.assertEqual(self.app.call("STRLEN k"), 9)
        with self.assertRaisesRegex(Refused, "SIMERR UNKNOWN"):
            self.control.fault("CMD nosuch DO DROP REPLY")

    def test_a_fault_acts_until_the_end_of_its_block(self):
        with self.control.fault(["CMD", "incr", "DO", "ERROR", "OOM no more", "AFTER"]) as refused:
            with self.assertRaisesRegex(Refused, "OOM no more"):
                self.app.call("INCR n")
            refused.await_hits(1)
            self.assertEqual(refused.hits()[0][2], 'INCR "n"')
        self.assertEqual(self.app.call("INCR n"), 2)

    def test_a_gate_holds_until_it_is_released(self):
        with self.control.gate("CMD set NAME app AT PRE") as gate:
            first = self.later(self.app, "SET k mine")
            (ticket,) = gate.wait()
            self.assertEqual(self.other.call("SET k theirs"), "OK")
            gate.release(ticket)
            self.assertEqual(first(), "OK")
            second = self.later(self.app, "SET k again")
            gate.wait()
        self.assertEqual(second(), "OK")
        self.assertEqual(self.other.call("GET k"), "again")

    def test_time_goes_on_when_told(self):
        with self.control.stop_clock():
            self.app.call("SET k v PX 1000")
            self.control.advance(999)
            self.assertEqual(self.app.call("PTTL k"), 1)
            self.control.advance(2)
            self.assertEqual(self.app.call("EXISTS k"), 0)
            self.app.call("SET k v PX 1000")
            with self.control.jump(0, 600):
                self.assertEqual(self.app.call("PTTL k"), 400)
            self.assertEqual(self.app.call("PTTL k"), 1000)
        self.assertEqual(self.control.call("SIM.CLOCK NOW")[3], "REAL")

    def test_nodes_refuse_pause_stop_and_take_over(self):
        with self.control.state(0, "OOM"), self.assertRaisesRegex(Refused, "OOM"):
            self.app.call("SET k v")
        with self.control.pause(0):
            reply = self.later(self.app, "SET k v")
        self.assertEqual(reply(), "OK")
        self.control.replicate(1, 0)
        with self.control.acknowledge(0, 7):
            self.assertEqual(self.app.call("WAIT 5 0"), 7)
        self.control.cut_link(1)
        self.app.call("SET late v")
        with self.control.stop(0, wipe=True), self.assertRaises(OSError):
            self.app.call("PING")
        self.control.promote(1)
        replica = Control(self.ports[1])
        self.addCleanup(replica.close)
        self.assertEqual(replica.call("EXISTS late"), 0)
        self.assertEqual(replica.call("SET k v"), "OK")

    def test_a_key_is_lost(self):
        self.app.call("SET k v")
        self.assertTrue(self.control.lose("k"))
        self.assertFalse(self.control.lose("k"))


if __name__ == "__main__":
    unittest.main()
