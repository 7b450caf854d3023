# SPDX-License-Identifier: Apache-2.0
"""Kills, stops, cuts off and restarts the nodes of a cluster, and watches over them.

Cutting off wants a network namespace of its own and nftables: every node then runs as a user of its
own, by which its packets are known."""

import json
import os
import random
import signal
import subprocess
import threading
import time

import wire


FIRST_USER = 47000


class Node:
    def __init__(self, role, entry, directory, binary):
        self.role = role
        self.id = entry["id"]
        self.name = f"{role}-{self.id}"
        self.http = entry["http"]
        self.pid = entry["pid"]
        self.directory = os.path.join(directory, self.name)
        self.binary = binary
        self.child = None
        self.up = True
        self.frozen = False
        self.user = None
        self.ports = [int(entry[k].rsplit(":", 1)[1]) for k in ("http", "raft", "rpc") if k in entry]

    def alive(self):
        if self.child is not None:
            return self.child.poll() is None
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
                state = stat.read().rsplit(")", 1)[1].split()[0]
            # Its first thread may be gone while another one still holds its files open.
            return state != "Z" or len(os.listdir(f"/proc/{self.pid}/task")) > 1
        except FileNotFoundError:
            return False

    def signal(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def wait_gone(self, timeout):
        """Seconds until it was gone, or None."""
        begin = time.monotonic()
        while self.alive():
            if time.monotonic() - begin > timeout:
                return None
            time.sleep(0.01)
        return time.monotonic() - begin

    def kill(self):
        self.up = False
        self.signal(signal.SIGKILL)
        self.wait_gone(5)

    def terminate(self, timeout=10):
        self.up = False
        self.signal(signal.SIGTERM)
        took = self.wait_gone(timeout)
        if took is None:
            self.kill()
        return took

    def start(self):
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.child = subprocess.Popen(
                [self.binary, "--config", os.path.join(self.directory, f"{self.role}.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self.user,
            )
        self.pid = self.child.pid
        self.frozen = False
        self.up = True

    def become(self, user):
        """From the next start on it runs as that user."""
        self.user = user
        os.chmod(self.directory, 0o755)
        for root, _, files in os.walk(self.directory):
            for path in [root] + [os.path.join(root, name) for name in files]:
                os.chown(path, user, -1)

    def add_options(self, options):
        with open(
            os.path.join(self.directory, f"{self.role}.conf"), "a", encoding="utf-8"
        ) as config:
            config.writelines(f"{option.replace('=', ' = ', 1)}\n" for option in options)

    def log_tail(self, lines=12):
        with open(os.path.join(self.directory, "log"), encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    def figures(self):
        """(open descriptors, resident KiB, threads, CPU ticks)."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
            ticks = stat.read().rsplit(")", 1)[1].split()
        resident = int(fields["RssAnon"].split()[0]) + int(fields["RssShmem"].split()[0])
        return (
            len(os.listdir(f"/proc/{self.pid}/fd")),
            resident,
            int(fields["Threads"]),
            int(ticks[11]) + int(ticks[12]),
        )


class Nodes:
    """All processes of one local cluster."""

    def __init__(self, binaries, directory, offset, options=(), users=False):
        """options: "coordinator:name=value" or "participant:…"."""
        self.directory = directory
        self.tool = os.path.join(binaries, "tidegate")
        subprocess.run(
            [self.tool, "cluster", "start", "--dir", directory, "--port-offset", str(offset)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(os.path.join(directory, "cluster.json"), encoding="utf-8") as file:
            self.description = json.load(file)
        self.coordinators = [
            Node("coordinator", entry, directory, os.path.join(binaries, "tidegate-coordinator"))
            for entry in self.description["coordinators"]
        ]
        self.participants = [
            Node("participant", entry, directory, os.path.join(binaries, "tidegate-participant"))
            for entry in self.description["participants"]
        ]
        self.all = self.coordinators + self.participants
        self.users = users
        if options or users:
            self.restart_with(options)

    def restart_with(self, options):
        for node in self.all:
            node.terminate()
        for number, node in enumerate(self.all):
            node.add_options(
                option.split(":", 1)[1] for option in options if option.startswith(node.role + ":")
            )
            if self.users:
                node.become(FIRST_USER + number)
            node.start()
        while self.leader() is None:
            time.sleep(0.1)

    def leader(self, timeout=1.0):
        """The coordinator that leads, as far as one of them tells."""
        for node in random.sample(self.coordinators, len(self.coordinators)):
            if not node.up or node.frozen:
                continue
            try:
                answer = wire.ask(node.http, "GET", "/metrics", timeout=timeout)
            except wire.Broken:
                continue
            if b"\ntidegate_raft_is_leader 1\n" in answer.body:
                return node
        return None

    def close(self):
        for node in self.all:
            node.signal(signal.SIGCONT)
            if node.up:
                node.kill()


class Net:
    """Which nodes cannot reach which."""

    TABLE = "inet tidegate_chaos"

    def __init__(self):
        self.lock = threading.Lock()
        self.cuts = []  # (user, ports, what becomes of packets)
        self.apply()

    def apply(self):
        rules = [
            f"add rule {self.TABLE} out meta skuid {user} tcp dport {{ {ports} }} {verdict}"
            for user, ports, verdict in self.cuts
        ]
        script = [
            f"add table {self.TABLE}",
            f"delete table {self.TABLE}",
            f"add table {self.TABLE}",
            f"add chain {self.TABLE} out {{ type filter hook output priority 0; }}",
        ]
        subprocess.run(["nft", "-f", "-"], input="\n".join(script + rules), text=True, check=True)

    def cut(self, some, others, one_way=False, verdict="drop"):
        """What `some` send to `others` is lost, and the other way round."""
        pairs = [(a, b) for a in some for b in others if a is not b]
        if not one_way:
            pairs += [(b, a) for a, b in pairs]
        cuts = [(a.user, ", ".join(map(str, b.ports)), verdict) for a, b in pairs]
        with self.lock:
            self.cuts += cuts
            self.apply()
        return cuts

    def heal(self, cuts):
        with self.lock:
            for cut in cuts:
                self.cuts.remove(cut)
            self.apply()


class Nemesis(threading.Thread):
    """A seeded schedule of misfortune."""

    MENU = {
        "kill leader": 30,
        "kill coordinator": 12,
        "kill participant": 8,
        "kill majority": 3,
        "kill all coordinators": 2,
        "kill everything": 1,
        "freeze leader": 12,
        "freeze coordinator": 6,
        "freeze participant": 8,
        "end leader": 6,
        "end coordinator": 4,
        "end participant": 4,
    }
    NET_MENU = {
        "isolate leader": 16,
        "isolate coordinator": 6,
        "isolate participant": 6,
        "deafen leader": 6,
        "deafen coordinator": 4,
        "deafen participant": 4,
        "unlink leader": 6,
        "halve all": 4,
        "reset all": 5,
        "reset leader": 5,
    }

    def __init__(self, nodes, history, stop, seed, pause, net=None):
        super().__init__(daemon=True)
        self.nodes = nodes
        self.history = history
        self.stop = stop
        self.random = random.Random(seed)
        self.pause = pause
        self.net = net
        self.menu = {**self.MENU, **self.NET_MENU} if net else self.MENU
        self.events = []

    def run(self):
        names, weights = list(self.menu), list(self.menu.values())
        while not self.stop.wait(self.pause * (0.3 + self.random.random() * 1.4)):
            name = self.random.choices(names, weights)[0]
            verb, what = name.split(" ", 1)
            victims = self.victims(what)
            if victims:
                self.history.count("nemesis " + name)
                self.events.append((round(time.monotonic(), 3), name, [v.name for v in victims]))
                getattr(self, verb)(victims)

    def victims(self, what):
        usable = [c for c in self.nodes.coordinators if c.up and not c.frozen]
        if what == "leader":
            leader = self.nodes.leader()
            return [leader] if leader else []
        if what == "coordinator":
            return [self.random.choice(usable)] if usable else []
        if what == "participant":
            usable = [p for p in self.nodes.participants if p.up and not p.frozen]
            return [self.random.choice(usable)] if usable else []
        if what == "majority":
            return usable[:2]
        if what == "all coordinators":
            return usable
        return [node for node in self.nodes.all if node.up and not node.frozen]

    def hold(self, cuts):
        self.history.count("cuts")
        self.stop.wait(self.random.choice([0.3, 1, 2, 4, 8, 12]))
        self.net.heal(cuts)

    def isolate(self, victims):
        """From all other nodes; clients reach it."""
        self.hold(self.net.cut(victims, self.nodes.all))

    def deafen(self, victims):
        """It hears, and nobody hears it; or the other way round."""
        others = [node for node in self.nodes.all if node not in victims]
        if self.random.random() < 0.5:
            victims, others = others, victims
        self.hold(self.net.cut(victims, others, one_way=True))

    def unlink(self, victims):
        """From all of the other kind."""
        self.hold(self.net.cut(victims, self.nodes.participants))

    def halve(self, victims):
        some = self.random.sample(self.nodes.all, len(self.nodes.all) // 2)
        self.hold(self.net.cut(some, [node for node in self.nodes.all if node not in some]))

    def reset(self, victims):
        """Connections break at the end that sends; the other end may not hear of it."""
        cuts = self.net.cut(victims, self.nodes.all, verdict="reject with tcp reset")
        self.stop.wait(self.random.choice([0.02, 0.1, 1]))
        self.net.heal(cuts)

    def kill(self, victims):
        for node in victims:
            node.up = False
            node.signal(signal.SIGKILL)
        self.history.count("kills", len(victims))
        for node in victims:
            node.wait_gone(5)
        self.stop.wait(self.random.choice([0, 0.1, 0.5, 1, 2, 4]))
        for node in self.random.sample(victims, len(victims)):
            node.start()

    def freeze(self, victims):
        for node in victims:
            node.frozen = True
            node.signal(signal.SIGSTOP)
        self.history.count("freezes", len(victims))
        self.stop.wait(self.random.choice([0.1, 0.3, 1, 2, 4, 10]))
        for node in victims:
            node.signal(signal.SIGCONT)
            node.frozen = False

    def end(self, victims):
        for node in victims:
            took = node.terminate()
            self.history.count("orderly stops")
            if took is None or took > 5:
                self.history.violation(f"{node.name} took {took} s to stop\n{node.log_tail()}")
            self.stop.wait(self.random.random())
            node.start()


class Guard(threading.Thread):
    """Tells when a node dies that nobody killed."""

    def __init__(self, nodes, history, stop):
        super().__init__(daemon=True)
        self.nodes = nodes
        self.history = history
        self.stop = stop

    def run(self):
        while not self.stop.wait(0.1):
            for node in self.nodes.all:
                if node.up and not node.alive() and node.up:
                    code = node.child.returncode if node.child else "?"
                    self.history.violation(
                        f"{node.name} died by itself (status {code})\n{node.log_tail(25)}"
                    )
                    node.start()
