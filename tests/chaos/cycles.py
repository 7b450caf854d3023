# SPDX-License-Identifier: Apache-2.0
"""Serialisability (rule 9): a history without a circle of dependencies is that of transactions one
after the other, in an order that agrees with the clock on the wall.

A table is a list to which versions append. From the order of versions and from what reads saw follow
write-write, write-read and read-write dependencies, from times those of the clock; Tarjan's algorithm
finds circles in time linear in their number."""


class Graph:
    def __init__(self):
        self.names = []
        self.next = []

    def node(self, name):
        self.names.append(name)
        self.next.append([])
        return len(self.names) - 1

    def edge(self, a, b, why):
        if a != b:
            self.next[a].append((b, why))

    def circles(self):
        """Sets of nodes of which each leads to each, larger than one."""
        index, low, on, stack, found = {}, {}, set(), [], []
        for root in range(len(self.names)):
            if root in index:
                continue
            work = [(root, 0)]
            while work:
                node, at = work.pop()
                if at == 0:
                    index[node] = low[node] = len(index)
                    stack.append(node)
                    on.add(node)
                for k in range(at, len(self.next[node])):
                    other = self.next[node][k][0]
                    if other not in index:
                        work += [(node, k + 1), (other, 0)]
                        break
                    if other in on:
                        low[node] = min(low[node], index[other])
                else:
                    if low[node] == index[node]:
                        found.append(self._pop(node, stack, on))
                    if work:
                        above = work[-1][0]
                        low[above] = min(low[above], low[node])
        return [circle for circle in found if len(circle) > 1]

    @staticmethod
    def _pop(node, stack, on):
        circle = []
        while True:
            circle.append(stack.pop())
            on.discard(circle[-1])
            if circle[-1] == node:
                return circle

    def told(self, circle):
        inside = set(circle)
        edges = [
            f"{self.names[a]} -{why}-> {self.names[b]}"
            for a in circle
            for b, why in self.next[a]
            if b in inside and self.names[a] and self.names[b]
        ]
        names = [self.names[node] for node in circle if self.names[node]]
        return f"a circle of {names[:8]}: {edges[:8]}"


def add_times(graph, timed):
    """timed: (begin, end or None, node). What ended before another began comes before it: through a
    chain of moments, so that there are no more edges than calls."""
    events = [(begin, 1, node) for begin, _, node in timed]
    events += [(end, 0, node) for _, end, node in timed if end is not None]
    moment = None
    for _, is_begin, node in sorted(events):
        if is_begin:
            if moment is not None:
                graph.edge(moment, node, "time")
        else:
            later = graph.node("")
            if moment is not None:
                graph.edge(moment, later, "time")
            graph.edge(node, later, "time")
            moment = later


def circles(feeds, ops, scans):
    graph = Graph()
    owner, timed = {}, []
    for op in ops:
        at = [(table, feeds[table].loads[i]) for table, i in op.parts if i in feeds[table].loads]
        if at:
            node = graph.node(f"{op.kind} {op.label}")
            timed.append((op.commit_invoked or op.begun, op.acked, node))
            owner.update((key, node) for key in at)
    for table, feed in feeds.items():
        for version in feed.versions:
            if (table, version + 1) in owner and (table, version) in owner:
                graph.edge(owner[table, version], owner[table, version + 1], "ww")
    groups = {}
    for number, scan in enumerate(scans):
        key = ("s", scan.snapshot) if scan.snapshot is not None else ("one", number)
        groups.setdefault(key, []).append(scan)
    for reads in groups.values():
        node = graph.node(" + ".join(f"read of {r.table} {r.version}" for r in reads))
        # A read of the past is not one of now.
        if all(read.how == "newest" for read in reads):
            timed.append((min(r.begin for r in reads), max(r.end for r in reads), node))
        for read in reads:
            if (read.table, read.version) in owner:
                graph.edge(owner[read.table, read.version], node, "wr")
            if (read.table, read.version + 1) in owner:
                graph.edge(node, owner[read.table, read.version + 1], "rw")
    add_times(graph, timed)
    return [graph.told(circle) for circle in graph.circles()]
