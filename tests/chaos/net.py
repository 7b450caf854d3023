# SPDX-License-Identifier: Apache-2.0
"""A network of its own for a cluster: one namespace a node, one for the clients, a bridge between
them, and what goes wrong on the way.

All of it is inside namespaces of network, mounts and processes that enter() makes, so that nothing
is left of it when this process ends, however that happens."""

import os
import shutil
import subprocess
import sys
import threading

CLIENTS = "clients"  # stands for the namespace of this process
CLIENT_ADDRESS = "10.66.0.254"
ADMIN_ADDRESS = "10.66.0.253"  # no fault ever concerns it: the nemesis asks from here
TABLE = "inet tidegate_chaos"
MARK = "TIDEGATE_CHAOS_INSIDE"
TOOLS = ["unshare", "nsenter", "ip", "nft", "ss", "tc"]


def why_not():
    """What keeps this machine from having such a network; None if nothing does."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if os.geteuid() != 0:
        return "not root"
    if missing:
        return "there is no " + ", ".join(missing)
    script = (
        "mount -t tmpfs none /run && mkdir /run/netns && ip netns add x1 && ip link add br0 type bridge"
        f" && ip link add v1 type veth peer name w1 netns x1 && nft add table {TABLE}"
    )
    tried = subprocess.run(
        ["unshare", "-n", "-m", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else tried.stderr.strip()[:200]


def enter():
    """Runs this program again, inside. Does not return there where it is outside."""
    if os.environ.get(MARK):
        return
    os.environ[MARK] = "1"
    inside = 'mount -t tmpfs none /run && mkdir /run/netns && ip link set lo up && exec "$@"'
    spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    sys.stdout.flush()
    os.execvp("unshare", ["unshare", *spaces, "sh", "-c", inside, "sh", sys.executable, *sys.argv])


class Net:
    def __init__(self):
        self.lock = threading.Lock()
        self.addresses = {CLIENTS: CLIENT_ADDRESS}
        self.rules = []  # (from, to, verdict)
        self.slow = {}  # node -> how many times
        self._ip(
            # A bridge would take another address with a new port, which the others do not know.
            "link add br0 address 02:00:00:00:42:01 type bridge",
            f"addr add {CLIENT_ADDRESS}/24 dev br0",
            f"addr add {ADMIN_ADDRESS}/24 dev br0",
            "link set br0 up",
        )

    def _ip(self, *commands):
        subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)

    def inside(self, name):
        """The words that run a command in a node's namespace."""
        return [] if name == CLIENTS else ["nsenter", f"--net=/run/netns/{name}"]

    def add(self, name):
        """A namespace for a node: its address."""
        number = len(self.addresses)
        address = f"10.66.0.{number}"
        self._ip(
            f"netns add {name}",
            f"link add v{number} type veth peer name eth0 netns {name}",
            f"link set v{number} master br0 up",
        )
        inner = f"addr add {address}/24 dev eth0\nlink set eth0 up\nlink set lo up"
        subprocess.run(["ip", "-n", name, "-batch", "-"], input=inner, text=True, check=True)
        self.addresses[name] = address
        return address

    def _apply(self, names):
        for name in names:
            script = [f"add table {TABLE}", f"delete table {TABLE}", f"add table {TABLE}"]
            script += [f"add chain {TABLE} in {{ type filter hook input priority 0; }}"]
            if name == CLIENTS:
                script += [f"add rule {TABLE} in ip daddr {ADMIN_ADDRESS} accept"]
            script += [
                f"add rule {TABLE} in ip saddr {self.addresses[source]} {verdict}"
                for source, to, verdict in self.rules
                if to == name
            ]
            subprocess.run(
                self.inside(name) + ["nft", "-f", "-"],
                input="\n".join(script) + "\n",
                text=True,
                check=True,
            )

    def cut(self, pairs, verdict="drop"):
        """pairs: (from, to), by name. What becomes of packets from there to there. For heal()."""
        rules = [(source, to, verdict) for source, to in pairs if source != to]
        with self.lock:
            self.rules += rules
            self._apply({to for _, to, _ in rules})
        return rules

    def heal(self, rules):
        with self.lock:
            for rule in rules:
                self.rules.remove(rule)
            self._apply({to for _, to, _ in rules})

    def throttle(self, name, rate):
        """What the node sends goes at no more than a rate like 2mbit."""
        bucket = ["root", "tbf", "rate", rate, "burst", "16kb", "latency", "400ms"]
        with self.lock:
            self.slow[name] = self.slow.get(name, 0) + 1
            subprocess.run(
                self.inside(name) + ["tc", "qdisc", "replace", "dev", "eth0", *bucket], check=True
            )

    def unthrottle(self, name):
        with self.lock:
            self.slow[name] -= 1
            if self.slow[name] == 0:
                subprocess.run(
                    self.inside(name) + ["tc", "qdisc", "del", "dev", "eth0", "root"], check=True
                )

    def kill_connections(self, name, peer=None):
        """Both ends of a node's connections, all or those to a peer."""
        to = self.addresses[peer] if peer else "10.66.0.0/24"
        subprocess.run(
            self.inside(name) + ["ss", "-K", "-H", "dst", to],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )


def both_ways(some, others):
    pairs = [(a, b) for a in some for b in others if a != b]
    return pairs + [(b, a) for a, b in pairs]
