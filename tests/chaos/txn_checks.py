# SPDX-License-Identifier: Apache-2.0
"""What must hold of transactions and labels. Each check returns sentences about what does not."""

import bisect
import itertools

RANK = {"UNKNOWN": 0, "PREPARE": 1, "PRECOMMITTED": 2, "COMMITTED": 3, "VISIBLE": 4}
REPEATED = ("retry", "double", "twin")  # kinds whose label is tried again
END = ("VISIBLE", "ABORTED", "UNKNOWN")


def named(op):
    return f"{op.kind} {op.label} txn {op.txn}"


def said(op):
    return f"{op.words[:3]} … {op.words[-4:]}" if len(op.words) > 7 else op.words


def found(feeds, op):
    return [(table, i, feeds[table].loads.get(i)) for table, i in op.parts]


class Reads:
    """Of one table: which versions reads of the newest one saw, by time."""

    def __init__(self, scans):
        self.by_begin = sorted((s for s in scans if s.how == "newest"), key=lambda s: s.begin)
        self.begins = [scan.begin for scan in self.by_begin]
        lowest = itertools.accumulate(
            reversed(self.by_begin), lambda a, b: a if a.version <= b.version else b
        )
        self.lowest_after = list(reversed(list(lowest)))
        by_end = sorted(self.by_begin, key=lambda s: s.end)
        self.ends = [scan.end for scan in by_end]
        self.highest_before = list(
            itertools.accumulate(by_end, lambda a, b: a if a.version >= b.version else b)
        )

    def lowest(self, time):
        """Of the reads that begin after that time."""
        at = bisect.bisect_right(self.begins, time)
        return self.lowest_after[at] if at < len(self.begins) else None

    def highest(self, time):
        """Of the reads that end before that time."""
        at = bisect.bisect_left(self.ends, time)
        return self.highest_before[at - 1] if at else None


def commits_kept(feeds, ops, scans):
    """What was acknowledged is there, whole, at one instant, from then on; and not before its commit
    was asked for (rules 1, 2 and 3)."""
    faults = []
    reads = {table: Reads([s for s in scans if s.table == table]) for table in feeds}
    for op in ops:
        parts = found(feeds, op)
        seen = [part for part in parts if part[2] is not None]
        if op.committed and op.refused:
            faults.append(f"{named(op)} was called committed and aborted: {said(op)}")
        if seen and len(seen) != len(parts):
            faults.append(f"{named(op)} is visible in part: {parts} {said(op)}")
        if op.committed and len(seen) != len(parts):
            faults.append(f"{named(op)} was committed and is lost: {parts} {said(op)}")
        if seen and op.commit_invoked is None:
            faults.append(f"{named(op)} is visible without a commit: {said(op)}")
        if len({feeds[table].versions[version][0] for table, _, version in seen}) > 1:
            faults.append(f"{named(op)} has several instants: {seen}")
        for table, _, version in seen:
            late = reads[table].lowest(op.acked) if op.acked else None
            early = reads[table].highest(op.commit_invoked) if op.commit_invoked else None
            if late and late.version < version:
                faults.append(f"{named(op)} was acknowledged before {late}: {version} {said(op)}")
            if early and early.version >= version:
                faults.append(f"{named(op)} was read before its commit: {early} {version}")
    return faults


def refusals_hidden(feeds, ops, scans):
    """What was refused or aborted is never seen by anybody (rule 3)."""
    shown = {}
    for table, feed in feeds.items():
        shown.update({i: f"the feed of {table}" for i in feed.loads})
    for scan in scans:
        for i in scan.content.values():
            shown.setdefault(i, scan)
    return [
        f"{named(op)} was refused and is visible in {shown[i]}: {said(op)}"
        for op in ops
        if op.refused
        for _, i in op.parts
        if i in shown
    ]


def labels_once(feeds, ops):
    """One transaction of a label is visible at most, and one client is told Success (rule 4)."""
    faults = []
    labels = {}
    for op in ops:
        labels.setdefault(op.label, []).append(op)
    for label, group in labels.items():
        visible = [op for op in group if any(version for _, _, version in found(feeds, op))]
        if len(visible) > 1:
            faults.append(f"{label}: {len(visible)} loads of one label are visible")
        if sum(op.committed for op in group) > 1:
            faults.append(f"{label}: several clients were told Success: {[said(o) for o in group]}")
    return faults


def states_advance(states, ops=()):
    """No answer about a label is older than one that was given before it was asked (rule 4)."""
    faults = []
    # From when on a label may have a further transaction, after one that was aborted.
    reloaded = {op.label: 0 for op in ops if op.kind in REPEATED}
    reloaded.update((op.label, op.begun) for op in ops if op.reload)
    labels = {}
    for state in states:
        labels.setdefault(state[0], []).append(state)
    for label, answers in labels.items():
        events = [(a[1], 1, n) for n, a in enumerate(answers)]
        events += [(a[2], 0, n) for n, a in enumerate(answers)]
        known = {}  # state -> an answer that ended with it
        before = {}
        for _, is_begin, n in sorted(events):
            if is_begin:
                before[n] = dict(known)
                continue
            for earlier in before[n].values():
                if goes_back(earlier[3], answers[n], reloaded.get(label)):
                    faults.append(f"{label}: {answers[n]} after {earlier}")
            known.setdefault(answers[n][3], answers[n])
    return faults


def goes_back(first, answer, reloaded):
    second = answer[3]
    if first == "ABORTED":
        return second != "ABORTED" and (reloaded is None or answer[2] < reloaded)
    if second == "ABORTED":
        return first in ("COMMITTED", "VISIBLE")
    if reloaded is not None and first in ("PREPARE", "PRECOMMITTED"):
        return second == "UNKNOWN"  # what is before may be of the first transaction
    return RANK[second] < RANK[first]


def states_final(ops, finals, feeds):
    """Once all is quiet: every coordinator says the same, it is final, and the rows agree (rules 2,
    4 and 10)."""
    faults = []
    labels = {}
    for op in ops:
        labels.setdefault(op.label, []).append(op)
    for label, group in labels.items():
        answers = finals.get(label)
        if not answers:
            continue
        if len(set(answers)) != 1:
            faults.append(f"{label}: the coordinators differ: {answers}")
        state = answers[0]
        parts = [part for op in group for part in found(feeds, op)]
        visible = any(version is not None for _, _, version in parts)
        if state not in END:
            faults.append(f"{label} is stuck in {state}: {said(group[-1])}")
        if visible != (state == "VISIBLE") and parts:
            faults.append(f"{label} is {state}, its rows are visible: {visible}; {said(group[-1])}")
    return faults


def stale_ms(feeds, ops, scans):
    """How late commits showed that were acknowledged without being visible yet, the worst: ms."""
    worst = 0
    for table, feed in feeds.items():
        mine = sorted((s for s in scans if s.table == table and s.how == "newest"),
                      key=lambda s: s.begin)
        for op in ops:
            if not op.committed_at or op.acked:
                continue
            versions = [feed.loads.get(i) for t, i in op.parts if t == table]
            late = [s.end for s in mine
                    if versions and versions[0] and s.begin > op.committed_at
                    and s.version < versions[0]]
            if late:
                worst = max(worst, (max(late) - op.committed_at) / 1e6)
    return round(worst)
