# SPDX-License-Identifier: Apache-2.0
"""What must hold of a history. Each check returns sentences about what does not."""

from workload import ROWS, check_number

ORDER = {"UNKNOWN": 0, "PREPARE": 1, "PRECOMMITTED": 2, "COMMITTED": 3, "VISIBLE": 4}


class Feed:
    """A table as its whole feed of changes tells it: one transaction a version."""

    def __init__(self, kind, rows):
        self.kind = kind
        self.faults = []
        self.versions = {}  # version -> (completion us, [load number])
        self.loads = {}  # load number -> version
        self.groups = {}  # version -> [(group, load number, deleted)]
        by_version = {}
        last = (0, 0)
        for row in rows:
            at = (row["_version"], row["_time_us"])
            if at < last or (at[0] > last[0]) != (at[1] > last[1]):
                self.faults.append(f"the feed goes from {last} to {at}")
            last = at
            by_version.setdefault(at, []).append(row)
        for (version, time_us), members in by_version.items():
            self._add(version, time_us, members)

    def _add(self, version, time_us, members):
        loads = {}
        for row in members:
            if check_number(row["i"], row["s"]) != row["c"]:
                self.faults.append(f"a wrong value in {row}")
            loads.setdefault(row["i"], []).append(row)
        self.versions[version] = (time_us, sorted(loads))
        for i, rows in loads.items():
            if i in self.loads:
                self.faults.append(f"load {i} is in versions {self.loads[i]} and {version}")
            self.loads[i] = version
            if sorted(row["s"] for row in rows) != list(range(ROWS)):
                self.faults.append(f"load {i} of version {version} has {len(rows)} rows: {rows}")
            if len({row["_op"] for row in rows}) != 1:
                self.faults.append(f"load {i} both deletes and writes: {rows}")
            if self.kind == "unique":
                self.groups.setdefault(version, []).append(
                    (rows[0]["g"], i, rows[0]["_op"] == "delete")
                )

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


def version_numbers(feed, newest, table):
    missing = sorted(set(range(1, newest + 1)) - set(feed.versions))
    return [f"{table}: versions {missing[:20]} of {newest} are not in the feed"] if missing else []


def scans_match(feed, scans, table):
    """Every scan shows exactly what the feed says of its version (rules 1, 3 and 6)."""
    faults = []
    by_version = {}
    for scan in scans:
        by_version.setdefault(scan[5], []).append(scan)
    for version, content in feed.contents():
        for scan in by_version.pop(version, []):
            if scan[7] != content:
                more = sorted(set(scan[7].items()) - set(content.items()))[:10]
                less = sorted(set(content.items()) - set(scan[7].items()))[:10]
                faults.append(
                    f"{table} version {version} {scan[3]} {scan[4]} from {scan[8]} has "
                    f"{more} and lacks {less}"
                )
    for version in by_version:
        faults.append(f"{table}: version {version} was read, but is not in the feed")
    return faults


def instants_match(feed, scans, table):
    """A read as of a time is the newest version completed by then (rule 6)."""
    faults = []
    times = sorted((time_us, version) for version, (time_us, _) in feed.versions.items())
    for scan in scans:
        if scan[3] != "as_of":
            continue
        asked = int(scan[4].split("=")[1])
        right = max([version for time_us, version in times if time_us <= asked], default=0)
        if scan[5] != right:
            faults.append(f"{table} as of {asked} was version {scan[5]}, should be {right}")
    return faults


def reads_advance(scans, table):
    """A read that begins after another ended is not older (rule 5)."""
    faults = []
    newest = [scan for scan in scans if scan[3] == "newest"]
    events = [(scan[1], 1, scan) for scan in newest] + [(scan[2], 0, scan) for scan in newest]
    floor = 0
    floors = {}
    for _, is_begin, scan in sorted(events, key=lambda event: event[:2]):
        if is_begin:
            floors[id(scan)] = floor
        else:
            if scan[5] < floors[id(scan)]:
                faults.append(f"{table}: version {scan[5]} read after {floors[id(scan)]}: {scan}")
            floor = max(floor, scan[5])
    return faults


def commits_show(feeds, ops, scans):
    """No acknowledged commit is lost or late; nothing that was refused shows; nothing shows early;
    the parts of a transaction share one instant (rules 1 to 4)."""
    faults = []
    reads = {}
    for scan in scans:
        if scan[3] == "newest":
            reads.setdefault(scan[0], []).append(scan)
    for op in ops:
        found = [(table, i, feeds[table].loads.get(i)) for table, i in op.parts]
        seen = [part for part in found if part[2] is not None]
        name = f"{op.kind} {op.label} txn {op.txn}"
        if op.committed and op.refused:
            faults.append(f"{name} was called committed and aborted: {op.words}")
        if seen and len(seen) != len(found) and op.kind != "retry":
            faults.append(f"{name} is visible in part: {found} {op.words}")
        if op.committed and not op.rival and len(seen) != len(found):
            faults.append(f"{name} was committed and is lost: {found} {op.words}")
        if op.rival and op.acked and not seen:
            faults.append(f"{name} was committed and is lost: {found} {op.words}")
        if op.rival and seen and any(
            feeds[table].loads.get(i) is not None for table, i in op.rival.parts
        ):
            faults.append(f"{name}: two loads of one label are visible")
        if op.refused and seen:
            faults.append(f"{name} was refused and is visible: {seen} {op.words}")
        if seen and op.commit_invoked is None:
            faults.append(f"{name} is visible without a commit: {op.words}")
        if len({feeds[table].versions[version][0] for table, _, version in seen}) > 1:
            faults.append(f"{name} has several instants: {seen}")
        for table, _, version in seen:
            for scan in reads.get(table, []):
                if op.acked and scan[1] > op.acked and scan[5] < version:
                    faults.append(
                        f"{name} was acknowledged before a read without it: {scan[:7]} {op.words}"
                    )
                if op.commit_invoked and scan[2] < op.commit_invoked and scan[5] >= version:
                    faults.append(f"{name} was read before its commit: {scan[:7]}")
    return faults


def states_advance(states):
    """No answer about a label is older than one that was given before it was asked (rule 4)."""
    faults = []
    labels = {}
    for state in states:
        labels.setdefault(state[0], []).append(state)
    for label, answers in labels.items():
        for later in answers:
            for earlier in answers:
                if earlier[2] >= later[1]:
                    continue
                a, b = earlier[3], later[3]
                if a == "ABORTED" and b != "ABORTED":
                    faults.append(f"{label}: {b} after ABORTED: {earlier} {later}")
                elif b == "ABORTED" and a in ("COMMITTED", "VISIBLE"):
                    faults.append(f"{label}: ABORTED after {a}: {earlier} {later}")
                elif "ABORTED" not in (a, b) and ORDER[b] < ORDER[a]:
                    faults.append(f"{label}: {b} after {a}: {earlier} {later}")
    return faults


def states_final(ops, finals, feeds):
    """Once all is quiet: every coordinator says the same, it is final, and the rows agree."""
    faults = []
    for op in ops:
        answers = finals[op.label]
        name = f"{op.kind} {op.label} txn {op.txn}"
        if len(set(answers)) != 1:
            faults.append(f"{name}: the coordinators differ: {answers}")
        state = answers[0]
        members = op.parts + (op.rival.parts if op.rival else [])
        visible = any(feeds[table].loads.get(i) is not None for table, i in members)
        if state not in ("VISIBLE", "ABORTED", "UNKNOWN"):
            faults.append(f"{name} is stuck in {state}: {op.words}")
        if visible != (state == "VISIBLE") and op.parts:
            faults.append(f"{name} is {state}, its rows are visible: {visible}; {op.words}")
    return faults
