# SPDX-License-Identifier: Apache-2.0
"""What must hold of reads, versions and feeds. Each check returns sentences about what does not."""

import bisect

from writers import ROWS, check_number


class Feed:
    """A table as its whole feed of changes tells it: one transaction a version."""

    def __init__(self, kind, rows):
        """rows: [version, time in us, op, load, s, check, group if unique]"""
        self.kind = kind
        self.rows = rows
        self.faults = []
        self.versions = {}  # version -> (completion us, [load number])
        self.loads = {}  # load number -> version
        self.groups = {}  # version -> [(group, load number, deleted)]
        by_version = {}
        last = (0, 0)
        for row in rows:
            at = (row[0], row[1])
            if at < last or (at[0] > last[0]) != (at[1] > last[1]):
                self.faults.append(f"the feed goes from {last} to {at}")
            last = at
            by_version.setdefault(at, []).append(row)
        for (version, time_us), members in by_version.items():
            self._add(version, time_us, members)

    def _add(self, version, time_us, members):
        loads = {}
        for row in members:
            if check_number(row[3], row[4]) != row[5]:
                self.faults.append(f"a wrong value in {row}")
            loads.setdefault(row[3], []).append(row)
        self.versions[version] = (time_us, sorted(loads))
        for i, rows in loads.items():
            if i in self.loads:
                self.faults.append(f"load {i} is in versions {self.loads[i]} and {version}")
            self.loads[i] = version
            if sorted(row[4] for row in rows) != list(range(ROWS)):
                self.faults.append(f"load {i} of version {version} has {len(rows)} rows: {rows}")
            if len({row[2] for row in rows}) != 1:
                self.faults.append(f"load {i} both deletes and writes: {rows}")
            if self.kind == "unique":
                self.groups.setdefault(version, []).append((rows[0][6], i, rows[0][2] == "delete"))

    def contents(self):
        """Yields (version, what a scan of it has to show)."""
        content = {}
        yield 0, dict(content)
        for version in sorted(self.versions):
            if self.kind == "unique":
                for group, i, deleted in self.groups[version]:
                    if deleted:
                        content.pop(group, None)
                    else:
                        content[group] = i
            else:
                content.update((i, i) for i in self.versions[version][1])
            yield version, content


def versions_contiguous(feed, newest, table):
    """Version numbers have no holes (rule 5; Feed itself looks at order and times)."""
    missing = sorted(set(range(1, newest + 1)) - set(feed.versions))
    return [f"{table}: versions {missing[:20]} of {newest} are not in the feed"] if missing else []


def scans_whole(scans):
    """Nothing is torn or wrong within one read (rule 1)."""
    return [f"{scan}: {scan.torn}" for scan in scans if scan.torn]


def scans_match(feed, scans, table):
    """Every scan shows exactly what the feed says of its version (rules 1, 3 and 6)."""
    faults = []
    by_version = {}
    for scan in scans:
        by_version.setdefault(scan.version, []).append(scan)
    for version, content in feed.contents():
        for scan in by_version.pop(version, []):
            if scan.content != content and not scan.torn:
                more = sorted(set(scan.content.items()) - set(content.items()))[:10]
                less = sorted(set(content.items()) - set(scan.content.items()))[:10]
                faults.append(f"{scan} has {more} and lacks {less}")
    for version in by_version:
        faults.append(f"{table}: version {version} was read, but is not in the feed")
    return faults


def snapshots_whole(feeds, ops, scans):
    """Reads of several tables at one instant show a transaction in all its tables or none (rule 1)."""
    faults = []
    snapshots = {}
    for scan in scans:
        if scan.snapshot is not None:
            snapshots.setdefault(scan.snapshot, {})[scan.table] = scan
    tied = []
    for op in ops:
        at = {(table, feeds[table].loads.get(i)) for table, i in op.parts}
        if len({table for table, _ in at}) > 1 and all(version for _, version in at):
            tied.append((op, at))
    for reads in snapshots.values():
        if len(reads) < 2:
            continue
        for op, at in tied:
            shown = {reads[t].version >= version for t, version in at if t in reads}
            if len(shown) > 1:
                faults.append(f"{op.label} is fractured: {at}, {[str(r) for r in reads.values()]}")
    return faults


def reads_repeat(scans):
    """One version of a table has one content, whoever is asked, whenever, however (rule 6)."""
    faults = []
    first = {}
    for scan in scans:
        other = first.setdefault((scan.table, scan.version), scan)
        if other.content != scan.content and not scan.torn and not other.torn:
            faults.append(f"{scan} differs from {other}")
    return faults


def instants_match(feed, scans):
    """A read as of a time is the newest version completed by then (rule 6)."""
    faults = []
    order = sorted((time_us, version) for version, (time_us, _) in feed.versions.items())
    times = [time_us for time_us, _ in order]
    for scan in scans:
        if scan.how != "as_of":
            continue
        at = bisect.bisect_right(times, int(scan.asked.split("=")[1]))
        right = order[at - 1][1] if at else 0
        if scan.version != right:
            faults.append(f"{scan} should be version {right}")
    return faults


def reads_advance(scans, table):
    """A read that begins after another ended is not older (rule 5)."""
    faults = []
    newest = [scan for scan in scans if scan.how == "newest"]
    events = [(s.begin, 1, n) for n, s in enumerate(newest)]
    events += [(s.end, 0, n) for n, s in enumerate(newest)]
    floor = 0
    floors = {}
    for _, is_begin, n in sorted(events):
        if is_begin:
            floors[n] = floor
        else:
            if newest[n].version < floors[n]:
                faults.append(f"{newest[n]} came after version {floors[n]} of {table} was read")
            floor = max(floor, newest[n].version)
    return faults


def puller_exact(name, events, whole):
    """A follower gets each change once and in order, however it chops them, and again the same after
    it lost its place (rule 7)."""
    faults = []
    rows = []
    at = {"after=0": 0}  # token -> rows before it
    position = "after=0"
    for event in events:
        if event["f"] == "restart":
            position = event["at"]
            continue
        if event["from"] != position:
            faults.append(f"{name} went on from {event['from']}, was at {position}")
            break
        begin = at[position]
        known = rows[begin : begin + len(event["rows"])]
        # Rows of one version come in no order that is promised.
        if versions_of(known) != versions_of(event["rows"])[: len(known)]:
            faults.append(f"{name} got other rows after {position} than before: {event['rows'][:3]}")
        if begin + len(event["rows"]) > len(rows):
            rows = rows[:begin] + event["rows"]
        position = event["to"]
        at.setdefault(position, begin + len(event["rows"]))
        if at[position] != begin + len(event["rows"]):
            faults.append(f"{name}: {position} is in two places of the feed")
    if versions_of(rows) != sorted(versions_of(rows)):
        faults.append(f"{name}: its feed is not in the order of versions")
    mine, right = sorted(rows), sorted(whole)
    if mine != right:
        more = [row for row in mine if mine.count(row) > right.count(row)][:3] if len(
            mine
        ) < 5000 else "?"
        faults.append(
            f"{name}: {len(mine)} changes in pieces, {len(right)} in one; too many {more}, "
            f"missing {[row for row in right if row not in mine][:3] if len(mine) < 5000 else '?'}"
        )
    return faults


def versions_of(rows):
    return [row[0] for row in rows]


def timelines_agree(facts):
    """All coordinators tell the same history of a table (rule 5). facts: node, table, val."""
    faults = []
    first = {}
    for fact in facts:
        other = first.setdefault(fact["table"], fact)
        if other["val"] != fact["val"]:
            odd = [pair for pair in zip(other["val"], fact["val"]) if pair[0] != pair[1]][:2]
            faults.append(
                f"{fact['table']}: the timelines of {other['node']} ({len(other['val'])}) and "
                f"{fact['node']} ({len(fact['val'])}) differ: {odd}"
            )
        versions = [entry for entry in fact["val"] if entry[0]]
        if any(b[0] != a[0] + 1 or b[1] <= a[1] for a, b in zip(versions, versions[1:])):
            faults.append(f"{fact['table']}: the timeline of {fact['node']} has a step that is none")
    return faults


def timeline_is_feed(feed, fact):
    """The timeline's versions are the feed's, with its times (rule 5)."""
    told = {version: time_us for version, time_us, *_ in fact["val"] if version}
    shown = {version: time_us for version, (time_us, _) in feed.versions.items()}
    odd = sorted(set(told.items()) ^ set(shown.items()))[:4]
    return [f"{fact['table']}: timeline and feed differ in {odd}"] if odd else []


def replicas_agree(facts):
    """Replicas with the same version hold the same (rule 5). facts: node, val {tablet: [version,
    digest]}."""
    faults = []
    first = {}
    for fact in facts:
        for tablet, (version, digest) in fact["val"].items():
            node, other = first.setdefault((tablet, version), (fact["node"], digest))
            if other != digest:
                faults.append(
                    f"tablet {tablet} version {version} differs between {node} and {fact['node']}"
                )
    return faults


def states_equal(facts):
    """Coordinators that have applied as much have the same state (rule 5). facts: node, at, hash."""
    first = {}
    return [
        f"the states of {first[fact['at']][0]} and {fact['node']} at {fact['at']} differ"
        for fact in facts
        if first.setdefault(fact["at"], (fact["node"], fact["hash"]))[1] != fact["hash"]
    ]
