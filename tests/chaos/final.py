# SPDX-License-Identifier: Apache-2.0
"""After a round: all transactions end, all copies are good again, and everything is read once more."""

import json
import random
import time

import leaks
import wire
from history import parse
from readers import Puller, Scanner
from writers import DB, Writer

QUIET_S = 30  # all transactions are final within this
REPAIR_S = 60  # … and all replicas good again within this
COLLECT_S = 30  # … and nothing is left to collect
FEED_S = 60  # a follower has caught up within this
TIMELINE_MAX = 10000
END = ("VISIBLE", "ABORTED", "UNKNOWN")


class Final:
    def __init__(self, run):
        self.run = run
        self.history = run.history
        self.nodes = run.nodes
        self.slow = run.options.slow

    def play(self):
        if not self.settle() or not self.works_again():
            self.wrong("the cluster does not work any more: the final reads are left out")
            return
        self.repaired()
        self.finals()
        newest = self.last_scans()
        self.old_scans(newest)
        self.feeds()
        self.timelines()
        self.states()
        self.tablets()
        self.stores()

    def fact(self, what, **more):
        self.history.log(p="final", type="info", f=what, **more)

    def wrong(self, text):
        self.fact("violation", text=text)

    def state(self, label, node, tries=30):
        for _ in range(tries):
            try:
                path = f"/api/{DB}/get_load_state?label={label}"
                answer = wire.ask(node, "GET", path, timeout=5).json()
                if answer["code"] == 0:
                    return answer["data"]
            except wire.Broken:
                pass
            time.sleep(0.3)
        return "unanswered"

    def settle(self):
        """Waits until every transaction is over; forgotten precommitted ones are aborted."""
        begin = time.monotonic()
        labels = list(dict.fromkeys(op.label for op in self.history.ops))
        while labels and time.monotonic() - begin < QUIET_S * self.slow:
            still = []
            for at, label in enumerate(labels):
                if time.monotonic() - begin > QUIET_S * self.slow:
                    still += labels[at:]
                    break
                state = self.state(label, random.choice(self.run.coordinators), tries=3)
                if state == "PRECOMMITTED":
                    self.abort(label)
                if state not in END:
                    still.append(label)
            labels = still
            if labels:
                time.sleep(0.5)
        took = round(time.monotonic() - begin, 1)
        self.history.counts["quiet after s"] = took
        self.fact("settled", s=took, open=labels)
        return not labels

    def abort(self, label):
        headers = {"label": label, "txn_operation": "abort"}
        try:
            node = random.choice(self.run.coordinators)
            wire.ask(node, "PUT", f"/api/{DB}/_stream_load_2pc", headers)
        except wire.Broken:
            pass

    def works_again(self):
        """A load into each table succeeds."""
        for table in self.run.tables:
            writer = Writer(self.run, 0, "again")
            for _ in range(20):
                op = writer.make("again")
                try:
                    if writer.load(op, table) == "success":
                        break
                except wire.Broken:
                    pass
                time.sleep(0.5 * self.slow)
            else:
                self.wrong(f"no load into {table} works any more: {op.words}")
                return False
        return True

    def repaired(self):
        """Waits until no replica is behind any more."""
        begin = time.monotonic()
        behind = {"?": "no answer"}
        while behind and time.monotonic() - begin < REPAIR_S * self.slow:
            try:
                node = random.choice(self.run.coordinators)
                tables = wire.ask(node, "GET", "/api/cluster").json()["data"]["cluster"]["tables"]
                behind = {t["table"]: t["replicas_behind"] for t in tables if t["replicas_behind"]}
            except (wire.Broken, KeyError, TypeError):
                pass
            time.sleep(0.25 if behind else 0)
        took = round(time.monotonic() - begin, 1)
        self.history.counts["repaired after s"] = took
        self.fact("repaired", s=took, behind=behind)

    def finals(self):
        for label in dict.fromkeys(op.label for op in self.history.ops):
            states = [self.state(label, node) for node in self.run.coordinators]
            self.fact("final", label=label, val=states)

    def last_scans(self):
        """Every table, whole, from every node: table -> newest version."""
        newest = {}
        for table in self.run.tables:
            for node in self.run.participants:
                scanner = Scanner(self.run, 0, "final")
                for _ in range(50):
                    try:
                        version = scanner.scan(table, "newest", "", node)
                        if version is not None:
                            newest[table] = version
                            break
                    except wire.Broken:
                        pass
                    time.sleep(0.3 * self.slow)
                else:
                    self.wrong(f"{table} cannot be read from {node}")
        return newest

    def old_scans(self, newest):
        """Old versions from every node, which reads its own replicas."""
        for table in self.run.tables:
            for node in self.run.participants:
                for _ in range(6):
                    version = random.randint(0, newest.get(table, 0))
                    try:
                        Scanner(self.run, 0, "final").scan(
                            table, "version", f"&version={version}", node
                        )
                    except wire.Broken as broken:
                        self.wrong(f"{table} version {version} cannot be read: {broken}")

    def feeds(self):
        """Every follower comes to the end, and a fresh one reads all in one."""
        for table in self.run.tables:
            follower = Puller(self.run, 0, table, f"pull {table}")
            follower.position = self.last_position(follower.name)
            whole = Puller(self.run, 0, table, f"whole {table}")
            for puller in (follower, whole):
                if not self.to_the_end(puller, limited=puller is follower):
                    return

    def to_the_end(self, puller, limited):
        empty = 0
        begin = time.monotonic()
        while empty < 3:
            before = puller.position
            came = puller.pull(limited)
            empty = empty + 1 if came is False else 0
            if came and puller.position == before:
                self.wrong(f"{puller.name}: {before} gives changes and stays where it is")
                return False
            if time.monotonic() - begin > FEED_S * self.slow:
                self.wrong(f"{puller.name} does not come to an end")
                return False
        return True

    def last_position(self, name):
        self.history.file.flush()
        position = "after=0"
        with open(self.run.path, encoding="utf-8") as file:
            for line in file:
                if f'"p":"{name}"' not in line:
                    continue
                event = json.loads(line)
                if event["f"] == "restart":
                    position = event["at"]
                elif event["type"] == "ok":
                    position = event["to"]
        return position

    def timelines(self):
        for node in self.run.coordinators:
            for table in self.run.tables:
                instants = self.timeline(node, table)
                if instants is None:
                    self.wrong(f"{node} tells no timeline of {table}")
                else:
                    self.fact("timeline", node=node, table=table, val=instants)

    def timeline(self, node, table):
        """[version, completion time, action, label] of completed versions, oldest first."""
        for _ in range(30):
            try:
                path = f"/api/{DB}/{table}/_timeline?limit={TIMELINE_MAX}&state=COMPLETED"
                answer = parse(wire.ask(node, "GET", path).body)
                if answer.get("code") == 0:
                    return told(answer["data"])
            except wire.Broken:
                pass
            time.sleep(0.3)
        return None

    def states(self):
        """The replicated state itself, as each coordinator has it."""
        for node in self.run.coordinators:
            try:
                answer = parse(wire.ask(node, "GET", "/api/state").body).get("data", {})
                self.fact("replicated", node=node, at=answer["applied_index"], hash=answer["state_hash"])
            except (wire.Broken, KeyError):
                self.history.count("states not told")

    def tablets(self):
        for node in self.run.participants:
            held, after = {}, 0
            while True:
                page = self.page(node, after)
                if not page:
                    break
                held.update({str(t["tablet"]): [t["version"], t["digest"]] for t in page})
                after = page[-1]["tablet"]
            self.fact("tablets", node=node, val=held)

    def page(self, node, after):
        for _ in range(30):
            try:
                answer = parse(wire.ask(node, "GET", f"/api/_tablets?after={after}").body)
                return answer["data"]["tablets"]
            except (wire.Broken, KeyError, TypeError):
                time.sleep(0.3)
        self.wrong(f"{node} does not say what it has bound")
        return []

    def stores(self):
        """What lies on the participants' disks, once nothing is left to collect."""
        if not leaks.possible():
            self.history.count("stores not looked at: no mdb_dump")
            return
        begin = time.monotonic()
        for node in self.nodes.participants:
            while True:
                fact = leaks.look(node.data)
                waited = time.monotonic() - begin
                if not leaks.busy(fact) or waited > COLLECT_S * self.slow:
                    break
                time.sleep(1)
            self.fact("stores", node=node.name, val=fact)
        self.history.counts["collected after s"] = round(time.monotonic() - begin, 1)


def told(data):
    instants = [i for i in data["instants"] if i.get("version")]
    return [[i["version"], i["completed_us"], i["action"], i["label"]] for i in reversed(instants)]
