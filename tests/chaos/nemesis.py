# SPDX-License-Identifier: Apache-2.0
"""A seeded schedule of misfortune, each kind a thread of its own, and a watch over the processes."""

import random
import signal
import threading
import time

from net import CLIENTS, both_ways

SYNC_ERROR_S = 8  # a process whose sync failed has ended within this
# Files made ahead that are thrown away then, and a participant's note of where to ask.
NO_PROMISE = ("(deleted)", "/coordinators.new")
CLOCKS = [1, 10, 60, 3600, 86400]
TIMES = [0.3, 1, 2, 4, 8]


class Nemesis(threading.Thread):
    """One kind of fault, over and over until it is told to stop. What it did wrong it makes good."""

    MENU = {}  # method and victims -> weight
    NEEDS_NET = False
    PAUSE = 1.0  # of the usual pause between two faults

    def __init__(self, nodes, history, stop, seed, every):
        super().__init__(daemon=True)
        self.nodes = nodes
        self.history = history
        self.stop = stop
        self.random = random.Random(seed)
        self.every = every * self.PAUSE

    @classmethod
    def possible(cls, nodes):
        return bool(nodes.net) or not cls.NEEDS_NET

    def run(self):
        names, weights = list(self.MENU), list(self.MENU.values())
        self.begin()
        while not self.stop.wait(self.every * (0.3 + self.random.random() * 1.4)):
            name = self.random.choices(names, weights)[0]
            verb, what = name.split(" ", 1)
            victims = [v for v in self.victims(what) if v.claimed.acquire(blocking=False)]
            try:
                if victims:
                    leads = self.nodes.leader() if verb in ("kill", "end", "freeze") else None
                    self.history.count("nemesis " + name)
                    self.tell(name, victims, "begin", leads=leads in victims)
                    getattr(self, verb)(victims)
                    self.tell(name, victims, "end")
            finally:
                for node in victims:
                    node.claimed.release()
        self.end_all()

    def begin(self):
        pass

    def end_all(self):
        pass

    def tell(self, name, victims, phase, **more):
        who = [victim.name for victim in victims]
        self.history.log(p="nemesis", type="info", f="nemesis", kind=name, who=who, phase=phase,
                         **more)

    def died(self, node):
        self.history.log(p="nemesis", type="info", f="died", node=node.name,
                         status=node.child.returncode, tail=node.log_tail(25))

    def victims(self, what):
        usable = [c for c in self.nodes.coordinators if c.up and not c.frozen]
        workers = [p for p in self.nodes.participants if p.up and not p.frozen]
        if what == "leader":
            leader = self.nodes.leader()
            return [leader] if leader else []
        if what == "majority":
            return self.random.sample(usable, min(len(usable), len(self.nodes.coordinators) // 2 + 1))
        if what == "participants":
            return self.random.sample(workers, min(len(workers), len(self.nodes.participants) // 2 + 1))
        some = {
            "coordinator": [self.random.choice(usable)] if usable else [],
            "participant": [self.random.choice(workers)] if workers else [],
            "node": [self.random.choice(usable + workers)] if usable + workers else [],
            "coordinators": usable,
        }
        return some.get(what, usable + workers)

    def hold(self, times=()):
        self.stop.wait(self.random.choice(times or TIMES))


class Kill(Nemesis):
    PAUSE = 0.5
    MENU = {
        "kill leader": 34,
        "kill coordinator": 12,
        "kill participant": 14,
        "kill majority": 4,
        "kill coordinators": 2,
        "kill participants": 2,
        "kill everything": 1,
        "end leader": 4,
        "end coordinator": 2,
        "end participant": 4,
    }

    def kill(self, victims):
        for node in victims:
            node.up = False
            node.signal(signal.SIGKILL)
        self.history.count("kills", len(victims))
        for node in victims:
            node.wait_gone(10)
        self.hold([0, 0, 0, 0.1, 0.5, 1, 2, 4])
        for node in self.random.sample(victims, len(victims)):
            node.start()

    def end(self, victims):
        for node in victims:
            took = node.terminate()
            self.history.count("orderly stops")
            self.history.log(p="nemesis", type="info", f="stop", node=node.name, took=took,
                             tail="" if took is not None and took < 8 else node.log_tail())
            if took is not None and not node.ended_well():
                self.died(node)
            self.stop.wait(self.random.random())
            node.start()


class Pause(Nemesis):
    MENU = {
        "freeze leader": 12,
        "freeze coordinator": 6,
        "freeze participant": 8,
        "freeze majority": 2,
        "freeze participants": 2,
    }

    def freeze(self, victims):
        for node in victims:
            node.frozen = True
            node.signal(signal.SIGSTOP)
        self.history.count("pauses", len(victims))
        self.hold([0.1, 0.3, 1, 2, 4, 10])
        for node in victims:
            node.signal(signal.SIGCONT)
            node.frozen = False


class Cuts(Nemesis):
    """Parent of all that goes wrong on the way."""

    NEEDS_NET = True

    def run(self):
        # The network fails whatever else happens to a process: nobody is claimed.
        names, weights = list(self.MENU), list(self.MENU.values())
        while not self.stop.wait(self.every * (0.3 + self.random.random() * 1.4)):
            name = self.random.choices(names, weights)[0]
            verb, what = name.split(" ", 1)
            victims = self.victims(what)
            if victims:
                self.history.count("nemesis " + name)
                self.tell(name, victims, "begin")
                getattr(self, verb)([victim.name for victim in victims])
                self.tell(name, victims, "end")

    def names(self):
        return [node.name for node in self.nodes.all]

    def cut(self, pairs, verdict="drop", times=()):
        rules = self.nodes.net.cut(pairs, verdict)
        self.hold(times)
        self.nodes.net.heal(rules)


class Partition(Cuts):
    MENU = {
        "isolate leader": 14,
        "isolate node": 8,
        "halve all": 6,
        "ring all": 4,
        "deafen leader": 5,
        "mute leader": 5,
        "deafen node": 4,
        "mute node": 4,
        "unlink leader": 6,
        "unlink coordinators": 3,
        "shut leader": 4,
        "shut all": 1,
        "bridge leader": 4,
    }

    def cut(self, pairs, verdict="drop", times=()):
        self.history.count("partitions")
        super().cut(pairs, verdict, times)

    def isolate(self, victims):
        """From all other nodes; clients reach it."""
        self.cut(both_ways(victims, self.names()))

    def halve(self, victims):
        some = self.random.sample(victims, len(victims) // 2)
        self.cut(both_ways(some, [name for name in victims if name not in some]))

    def ring(self, _):
        """Each node sees its two neighbours only: every coordinator a majority, each another one."""
        order = self.random.sample(self.names(), len(self.names()))
        near = {(a, b) for i, a in enumerate(order) for b in (order[i - 1], order[i - len(order) + 1])}
        self.cut([pair for pair in both_ways(order, order) if pair not in near])

    def deafen(self, victims):
        """It is heard and hears nothing."""
        self.cut([(other, victim) for victim in victims for other in self.names()])

    def mute(self, victims):
        """It hears and is not heard."""
        self.cut([(victim, other) for victim in victims for other in self.names()])

    def unlink(self, victims):
        """From all of the other kind."""
        self.cut(both_ways(victims, [node.name for node in self.nodes.participants]))

    def shut(self, victims):
        """From the clients only."""
        self.cut(both_ways(victims, [CLIENTS]))

    def bridge(self, victims):
        """It sees both halves of the coordinators, which do not see each other."""
        rest = [c.name for c in self.nodes.coordinators if c.name not in victims]
        self.cut(both_ways(rest, rest))


class Flaky(Cuts):
    MENU = {"lose leader": 4, "lose node": 6, "lose all": 3}

    def lose(self, victims):
        self.history.count("flaky links")
        share = self.random.randint(1, 30)
        pairs = both_ways(victims, self.names() + [CLIENTS])
        self.cut(pairs, f"numgen random mod 100 < {share} drop", [1, 2, 4, 8])


class Reset(Cuts):
    MENU = {"reset leader": 4, "reset node": 5, "reset all": 2, "tear node": 5, "tear all": 3}
    PAUSE = 0.6

    def reset(self, victims):
        """Connections break at the end that sends; the other end may not hear of it."""
        self.history.count("resets")
        pairs = both_ways(victims, self.names() + [CLIENTS])
        self.cut(pairs, "meta l4proto tcp reject with tcp reset", [0.02, 0.1, 1])

    def tear(self, victims):
        """Both ends of every connection break once."""
        self.history.count("resets")
        for victim in victims:
            self.nodes.net.kill_connections(victim)


class Slow(Cuts):
    MENU = {"throttle leader": 4, "throttle node": 6, "throttle all": 2}

    def throttle(self, victims):
        self.history.count("slow links")
        rate = self.random.choice(["200kbit", "1mbit", "4mbit"])
        for victim in victims:
            self.nodes.net.throttle(victim, rate)
        self.hold([1, 2, 4, 8])
        for victim in victims:
            self.nodes.net.unthrottle(victim)


class Delay(Cuts):
    """There is no queue that delays in every kernel: the way is closed and opened again, so that
    what comes is late by up to so long, and by what TCP then waits."""

    MENU = {"stutter leader": 4, "stutter node": 5, "stutter all": 1}

    def stutter(self, victims):
        self.history.count("delays")
        end = time.monotonic() + self.random.choice([1, 2, 4])
        late = self.random.choice([0.02, 0.1, 0.3, 0.5])
        pairs = both_ways(victims, self.names())
        while time.monotonic() < end and not self.stop.is_set():
            self.cut(pairs, "drop", [late])
            self.stop.wait(0.05 + late * self.random.random())


class Swizzle(Cuts):
    """Nodes are cut off one after the other, and come back in another order."""

    MENU = {"swizzle all": 1}
    PAUSE = 2

    def swizzle(self, victims):
        self.history.count("swizzles")
        some = self.random.sample(victims, self.random.randint(2, len(victims)))
        cuts = []
        for name in some:
            cuts.append(self.nodes.net.cut(both_ways([name], self.names())))
            self.stop.wait(self.random.random())
        self.random.shuffle(cuts)
        for rules in cuts:
            self.nodes.net.heal(rules)
            self.stop.wait(self.random.random())


class Disk(Nemesis):
    """A disk has little room, or none, and later has room again."""

    MENU = {"fill leader": 1, "fill all": 3}
    NEEDS_NET = True

    def victims(self, what):
        return [node for node in super().victims(what) if node.own_disk]

    def fill(self, victims):
        node = self.random.choice(victims)
        self.history.count("full disks")
        left = self.random.choice([0, 64 << 10, 2 << 20, 12 << 20])
        node.excuse = f"its disk had {left} bytes left"
        node.fill_disk(left)
        self.hold([1, 2, 4, 8])
        node.empty_disk()
        if not node.alive():
            self.history.count("ended on a full disk")
            if node.child.returncode < 0:
                self.died(node)
            node.start()
        node.excuse = None


class Sync(Nemesis):
    """A sync fails: the process must end, since what it was to keep may be gone."""

    MENU = {"fail leader": 3, "fail coordinator": 2, "fail participant": 5}
    PAUSE = 1.5

    @classmethod
    def possible(cls, nodes):
        return nodes.shim is not None

    def fail(self, victims):
        node = victims[0]
        before = node.faults.syncs_failed()
        node.excuse = "a sync failed"
        node.faults.fail_syncs(1)
        self.stop.wait(3)
        node.faults.fail_syncs(0)
        if node.faults.syncs_failed() > before:
            self.history.count("failed syncs")
            took = node.wait_gone(SYNC_ERROR_S)
            file = node.faults.failed_file()
            if took is None and file.endswith(NO_PROMISE):
                self.history.count("failed syncs of nothing promised")
            elif took is None:
                self.history.log(p="nemesis", type="info", f="survived", node=node.name,
                                 file=file, tail=node.log_tail())
            if took is None:
                node.kill()
            elif node.child.returncode < 0:
                self.died(node)
            node.up = False
            node.start()
        node.excuse = None


class Clock(Nemesis):
    """A node's wall clock jumps."""

    MENU = {"jump leader": 4, "jump node": 5}

    @classmethod
    def possible(cls, nodes):
        return nodes.shim is not None

    def jump(self, victims):
        self.history.count("clock jumps")
        victims[0].faults.set_clock(self.random.choice(CLOCKS) * self.random.choice([-1, 1]))
        self.hold()
        if self.random.random() < 0.7:
            victims[0].faults.set_clock(0)

    def end_all(self):
        for node in self.nodes.all:
            node.faults.set_clock(0)


class Storm(Nemesis):
    """Snapshots and heartbeats, with which collecting comes, as fast as can be."""

    def run(self):
        self.history.count("storms")
        self.tell("storm", self.nodes.all, "begin")
        self.nodes.storm(True)
        self.stop.wait()
        self.nodes.storm(False)
        self.tell("storm", self.nodes.all, "end")


class Members(Nemesis):
    """Coordinators are replaced, alive or dead, and hand their leadership over."""

    MENU = {"replace leader": 2, "replace coordinator": 3, "succeed coordinator": 3,
            "transfer leader": 4}
    PAUSE = 1.5
    PATIENCE_S = 60  # once nothing else goes wrong

    def replace(self, victims):
        """A new one comes, then the old one goes."""
        if self.bring():
            self.drop(victims[0])

    def succeed(self, victims):
        """The old one dies and is dropped, then a new one comes."""
        victims[0].kill()
        self.history.count("kills")
        self.drop(victims[0])
        self.bring()

    def transfer(self, _):
        self.history.count("transfers")
        self.nodes.order("transfer")

    def wait(self, what, order, done):
        """Asks for a change until it is made, also while everything else fails."""
        deadline = time.monotonic() + self.PATIENCE_S
        calm = None
        answer = ""
        while calm is None or time.monotonic() < deadline:
            if calm is None and self.stop.is_set():
                calm = time.monotonic()
                deadline = calm + self.PATIENCE_S
            members, data = self.nodes.members()
            if members is not None and done(members):
                return members, data
            if members is not None and order:
                answer = self.nodes.order(order)
                self.history.log(p="nemesis", type="info", f="order", order=order, text=answer[:300])
            time.sleep(0.3)
        self.history.log(p="nemesis", type="info", f="violation",
                         text=f"{what} did not come about in {self.PATIENCE_S} s: {answer[:300]}")
        return None, None

    def bring(self):
        members, data = self.wait("a list of coordinators", None, bool)
        if members is None:
            return False
        node = self.nodes.new_coordinator(data["next_id"])
        where = f"id={node.id}&raft={node.host}:{node.raft_port}"
        where += f"&rpc={node.host}:{node.rpc_port}&http={node.host}:{node.http_port}"
        order = f"add?{where}"
        members, _ = self.wait(
            f"adding {node.name}", order, lambda m: m.get(node.id, {}).get("standing") == "votes"
        )
        self.history.count("coordinators added")
        self.nodes.enlist(node)
        return members is not None

    def drop(self, node):
        node.excuse = "it was dropped"
        members, _ = self.wait(f"dropping {node.name}", f"drop?id={node.id}",
                               lambda members: node.id not in members)
        if members is None:
            return
        self.history.count("coordinators dropped")
        self.nodes.dismiss(node)
        if node.up and node.wait_gone(20) is None:
            self.history.log(p="nemesis", type="info", f="violation",
                             text=f"{node.name} was dropped and does not end\n{node.log_tail()}")
        elif node.up and node.child.returncode != 0:
            self.died(node)
        node.kill()


KINDS = {
    "members": Members,
    "kill": Kill,
    "pause": Pause,
    "partition": Partition,
    "flaky": Flaky,
    "reset": Reset,
    "slow": Slow,
    "delay": Delay,
    "swizzle": Swizzle,
    "disk": Disk,
    "sync": Sync,
    "clock": Clock,
    "storm": Storm,
}


def deal(rounds, seed, kinds, always=()):
    """At most three kinds for each round, so that all have their turn. always: kinds that are in each
    round; what is there twice goes on twice at once."""
    dealer = random.Random(seed)
    deck = []
    hands = []
    for _ in range(rounds):
        hand = [kind for kind in always if kind in kinds]
        while len(set(hand)) < min(3, len(kinds)):
            if not deck:
                deck = dealer.sample(kinds, len(kinds))
            kind = deck.pop()
            if kind not in hand:
                hand.append(kind)
        hands.append(hand)
    return hands


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
                if not node.up or node.alive() or node.excuse or not node.claimed.acquire(False):
                    continue
                if node.up and not node.alive() and not node.excuse:
                    self.history.log(p="guard", type="info", f="died", node=node.name,
                                     status=node.child.returncode, tail=node.log_tail(25))
                    node.start()
                node.claimed.release()
