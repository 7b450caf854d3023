# SPDX-License-Identifier: Apache-2.0
"""The processes of a local cluster: made by the tool once, then started and ended one by one."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "chaos"))
import wire  # noqa: E402


class Hang(Exception):
    """Something did not end, or did not begin to work, in its time."""


def wait_for(what, seconds, condition):
    """Asks until the condition gives something true, which is returned."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Hang(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Node:
    def __init__(self, role, entry, directory, binaries):
        self.role = role
        self.id = entry["id"]
        self.name = f"{role}-{self.id}"
        self.http = entry["http"]
        self.directory = os.path.join(directory, self.name)
        self.data = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "log")
        self.command = [
            os.path.join(binaries, f"tidegate-{role}"),
            "--config",
            os.path.join(self.directory, f"{role}.conf"),
        ]
        self.child = None

    def start(self, env=None, prepare=None):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                preexec_fn=prepare,
            )

    def runs(self):
        return self.child is not None and self.child.poll() is None

    def kill(self):
        if self.runs():
            self.child.kill()
        if self.child is not None:
            self.child.wait(30)

    def terminate(self, seconds=20):
        """Its exit status. Hang if it does not end."""
        if self.runs():
            self.child.terminate()
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait(30)
            raise Hang(f"{self.name} does not end on SIGTERM within {seconds} s") from None

    def log_size(self):
        return os.path.getsize(self.log)

    def log_since(self, size):
        with open(self.log, "rb") as log:
            log.seek(size)
            return log.read().decode(errors="replace")

    def healthy(self):
        try:
            return wire.ask(self.http, "GET", "/api/health", timeout=2).status == 200
        except wire.Broken:
            return False

    def metric(self, name):
        """Its value, None without an answer."""
        try:
            text = wire.ask(self.http, "GET", "/metrics", timeout=2).body.decode()
        except wire.Broken:
            return None
        for line in text.splitlines():
            if line.startswith(name + " "):
                return int(line.split()[1])
        return None


class Cluster:
    def __init__(self, binaries, directory, coordinators, participants, options=()):
        """options: "coordinator:key=value" and "participant:…". It runs when this returns."""
        self.directory = directory
        binaries = os.path.abspath(binaries)
        self.tool = [os.path.join(binaries, "tidegate"), "cluster"]
        flags = ["--coordinators", str(coordinators), "--participants", str(participants)]
        for option in options:
            role, setting = option.split(":", 1)
            flags += [f"--{role}-option", setting]
        where = ["--dir", directory]
        subprocess.run(
            self.tool + ["start", "--port-offset", "auto"] + where + flags,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        subprocess.run(self.tool + ["stop"] + where, check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(directory, "cluster.json"), encoding="utf-8") as file:
            made = json.load(file)
        self.coordinators = [
            Node("coordinator", entry, directory, binaries) for entry in made["coordinators"]
        ]
        self.participants = [
            Node("participant", entry, directory, binaries) for entry in made["participants"]
        ]
        self.nodes = self.coordinators + self.participants

    def start(self):
        for node in self.nodes:
            if not node.runs():
                node.start()

    def wait_serves(self, seconds=60):
        """Until all nodes run, one leads and no copy is behind."""
        for node in self.nodes:
            if not node.runs():
                raise Hang(f"{node.name} has ended: {node.log_since(0)[-600:]}")
        for node in self.participants:
            wait_for(f"{node.name} serves", seconds, node.healthy)
        wait_for("one leads", seconds, self.leader)
        wait_for("all copies are good", seconds, lambda: self.behind() == 0)

    def leader(self):
        for node in self.coordinators:
            if node.runs() and node.metric("tidegate_raft_is_leader") == 1:
                return node
        return None

    def behind(self):
        """Copies that are not good, as the leader counts them; None if nobody says."""
        leader = self.leader()
        return None if leader is None else leader.metric("tidegate_replicas_behind")

    def digests_differ(self):
        """What participants say of their tablets, where they do not say the same."""
        found = {}
        for node in self.participants:
            answer = wire.ask(node.http, "GET", "/api/_tablets")
            found.setdefault(answer.body, []).append(node.name)
        return None if len(found) == 1 else {k.decode(): v for k, v in found.items()}

    def compare(self, seconds=30):
        """Sentences about participants that do not come to hold the same: what a majority has bound
        is visible, and the third follows."""
        try:
            wait_for("the same", seconds, lambda: self.digests_differ() is None)
            return []
        except Hang:
            return [f"participants hold different things: {self.digests_differ()}"]

    def close(self):
        for node in self.nodes:
            node.kill()


SIGNALS = {number: name.name for number, name in ((s.value, s) for s in signal.Signals)}
