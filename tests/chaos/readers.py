# SPDX-License-Identifier: Apache-2.0
"""Clients that read: whole tables, changes, states of labels."""

import json
import random
import re
import threading
import time
import zlib

import wire
from history import Call
from writers import DB, ROWS, check_number


def refused(history, answer):
    """A read was answered with a sentence; which, without its numbers."""
    text = re.sub(r"[a-z]?[0-9]+", "N", answer.body.decode(errors="replace"))
    history.count("refused: " + text[:90].strip())


def parse_rows(kind, text):
    """Rows of a scan as CSV: ({key: load number}, complaint). Every load or group must be whole."""
    seen = {}
    for line in text.decode().splitlines():
        if kind == "unique":
            key, s, i, c = line.split(",")
        else:
            key, s, c, *more = line.split(",")
            i = key
            if more and zlib.crc32(more[1].strip('"').encode()) != int(more[0]):
                return {}, f"a wrong long value in {line[:80]!r}"
        key, i = int(key), int(i)
        if check_number(i, int(s)) != int(c):
            return {}, f"a wrong value in {line!r}"
        seen.setdefault(key, []).append((i, int(s)))
    for key, rows in seen.items():
        if len({i for i, _ in rows}) != 1 or sorted(s for _, s in rows) != list(range(ROWS)):
            return {}, f"torn: {key} has {rows}"
    return {key: rows[0][0] for key, rows in seen.items()}, None


def columns(kind, whole=False):
    if kind == "unique":
        return "g,s,i,c"
    return "i,s,c,h,pad" if whole else "i,s,c"


class Scanner(threading.Thread):
    """Reads whole tables: the newest version, old versions, instants, all tables at one instant."""

    def __init__(self, run, seed, name="scanner"):
        super().__init__(daemon=True, name=name)
        self.run_ = run
        self.history = run.history
        self.random = random.Random(seed)

    def run(self):
        while not self.run_.stop.is_set():
            try:
                self.once()
            except wire.Broken as broken:
                self.history.count(f"scan broken: {broken}"[:50])
            time.sleep(0.05 + self.random.random() * 0.3)

    def choose(self):
        table = self.random.choice(self.run_.tables)
        way = self.random.random()
        with self.history.lock:
            old = [read for read in self.history.old[-400:] if read[0] == table]
        if way < 0.45 or not old:
            return table, "newest", ""
        _, version, as_of = self.random.choice(old)
        if way < 0.6:
            return table, "version", f"&version={version}"
        if way < 0.8:
            return table, "as_of", f"&as_of={as_of + self.random.choice([-1, 0, 1, 1000])}"
        past = self.random.randrange(2000000)
        return None, "as_of", f"&as_of={int(time.time() * 1e6) - past}"

    def once(self):
        nodes = self.run_.participants + self.run_.coordinators
        table, how, asked = self.choose()
        snapshot = None if table else self.history.next_number()
        for each in [table] if table else self.run_.tables:
            self.scan(each, how, asked, self.random.choice(nodes), snapshot)

    def scan(self, table, how, asked, node, snapshot=None):
        """The version that was read, None if that was refused."""
        kind = self.run_.kind[table]
        shown = columns(kind, self.random.random() < 0.04)
        path = f"/api/{DB}/{table}/_scan?format=csv&columns={shown}{asked}"
        more = {"snap": snapshot} if snapshot else {}
        with Call(self.history, self.name, "scan", table=table, how=how, asked=asked, node=node,
                  **more) as call:
            answer = wire.get_following(node, path)
            self.history.count(f"scan {answer.status}")
            if answer.status != 200:
                refused(self.history, answer)
                call.end("fail", text=answer.body.decode(errors="replace")[:200])
                return None
            end = time.monotonic_ns()
            content, torn = parse_rows(kind, answer.body)
            version = int(answer.headers["x-tidegate-version"])
            as_of = int(answer.headers["x-tidegate-as-of"])
            value = content if kind == "unique" else sorted(content)
            call.end("ok", t=end, ver=version, as_of=as_of, val=value,
                     **({"torn": torn} if torn else {}))
        with self.history.lock:
            self.history.old.append((table, version, as_of))
        return version


class Puller(threading.Thread):
    """Follows one table's changes by token, from changing nodes. Now and then it dies before it has
    kept its token, and begins again from the last one that it kept."""

    def __init__(self, run, seed, table, name):
        super().__init__(daemon=True, name=name)
        self.run_ = run
        self.history = run.history
        self.random = random.Random(seed)
        self.table = table
        self.kind = run.kind[table]
        self.position = self.kept = "after=0"

    def run(self):
        while not self.run_.stop.is_set():
            self.pull()
            chance = self.random.random()
            if chance < 0.6:
                self.kept = self.position
            elif chance > 0.97 and self.kept != self.position:
                self.history.count("pullers killed")
                self.history.log(p=self.name, type="info", f="restart", at=self.kept)
                self.position = self.kept
            time.sleep(self.random.random() * 0.5)

    def pull(self, limited=True):
        """True if something new came, None if no answer came."""
        node = self.random.choice(self.run_.participants)
        query = f"{self.position}&columns={columns(self.kind)}"
        if limited and self.random.random() < 0.7:
            query += f"&limit={self.random.choice([1, 5, 7, 100, 1000])}"
        if limited and self.random.random() < 0.3:
            query += "&wait_ms=500"
        try:
            with Call(self.history, self.name, "incr", table=self.table, node=node,
                      **{"from": self.position}) as call:
                answer = wire.ask(node, "GET", f"/api/{DB}/{self.table}/_changes?{query}")
                self.history.count(f"pull {answer.status}")
                if answer.status != 200:
                    refused(self.history, answer)
                    call.end("fail", text=answer.body.decode(errors="replace")[:200])
                    return None
                end = time.monotonic_ns()
                rows = [json.loads(line) for line in answer.body.splitlines()]
                position = f"token={answer.headers['x-tidegate-token']}"
                call.end("ok", t=end, to=position, rows=[pack(row) for row in rows])
        except wire.Broken as broken:
            self.history.count(f"pull broken: {broken}"[:50])
            return None
        self.position = position
        return bool(rows)


def pack(row):
    """A row of changes as the history has it."""
    more = [row["g"]] if "g" in row else []
    return [row["_version"], row["_time_us"], row["_op"], row["i"], row["s"], row["c"], *more]


class Watcher(threading.Thread):
    """Asks coordinators for the states of labels."""

    def __init__(self, run, seed, name):
        super().__init__(daemon=True, name=name)
        self.run_ = run
        self.history = run.history
        self.random = random.Random(seed)

    def run(self):
        while not self.run_.stop.is_set():
            with self.history.lock:
                recent = self.history.ops[-40:]
            if recent:
                label = self.random.choice(recent).label
                self.look(label, self.random.choice(self.run_.coordinators))
            time.sleep(0.02 + self.random.random() * 0.1)

    def look(self, label, node):
        try:
            with Call(self.history, self.name, "state", label=label, node=node) as call:
                path = f"/api/{DB}/get_load_state?label={label}"
                answer = wire.ask(node, "GET", path).json()
                if answer["code"] != 0:
                    self.history.count("state refused")
                    call.end("fail", text=str(answer)[:200])
                    return None
                call.end("ok", val=answer["data"])
                return answer["data"]
        except wire.Broken as broken:
            self.history.count(f"state broken: {broken}"[:50])
            return None
