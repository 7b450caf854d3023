#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that must hold of a history, and its figures.

  tests/chaos/checks.py history-1000.jsonl…

Ends with status 1 if anything does not hold."""

import math
import sys

import cycles
import history
import leaks
import table_checks as tables
import txn_checks as txns

STOP_S = 8  # an orderly stop takes no longer, also where no coordinator can be asked


def events_hold(past):
    """What the run itself saw go wrong (rule 10)."""
    faults = [event["text"] for event in past.of("violation")]
    for event in past.of("died"):
        faults.append(f"{event['node']} died by itself ({event['status']})\n{event['tail']}")
    for event in past.of("survived"):
        faults.append(f"{event['node']} went on after a sync of "
                      f"{event.get('file')} failed\n{event['tail']}")
    for event in past.of("stop"):
        if event["took"] is None or event["took"] > STOP_S:
            faults.append(f"{event['node']} took {event['took']} s to stop\n{event['tail']}")
    for event in past.of("settled"):
        if event["open"]:
            faults.append(f"after {event['s']} s not final: {event['open'][:10]}")
    for event in past.of("repaired"):
        if event["behind"]:
            faults.append(f"replicas are still behind after {event['s']} s: {event['behind']}")
    return faults


def check(past):
    """Sentences about what does not hold."""
    ops = list(past.ops.values())
    faults = events_hold(past)
    feeds = {}
    for table, kind in past.kinds.items():
        whole = past.pulls.get(f"whole {table}", [])
        feeds[table] = tables.Feed(kind, [row for event in whole for row in event["rows"]])
        faults += [f"{table}: {fault}" for fault in feeds[table].faults]
    for table, feed in feeds.items():
        scans = [scan for scan in past.scans if scan.table == table]
        newest = max((scan.version for scan in scans), default=0)
        faults += tables.versions_contiguous(feed, newest, table)
        faults += tables.scans_match(feed, scans, table)
        faults += tables.instants_match(feed, scans)
        faults += tables.reads_advance(scans, table)
    faults += tables.scans_whole(past.scans)
    faults += tables.snapshots_whole(feeds, ops, past.scans)
    faults += tables.reads_repeat(past.scans)
    for name, events in past.pulls.items():
        kind, table = name.split(" ", 1)
        if kind != "whole":
            faults += tables.puller_exact(name, events, feeds[table].rows)
    timelines = past.of("timeline")
    faults += tables.timelines_agree(timelines)
    for fact in timelines[:len(feeds)]:
        faults += tables.timeline_is_feed(feeds[fact["table"]], fact)
    faults += tables.states_equal(past.of("replicated"))
    faults += tables.replicas_agree(past.of("tablets"))
    faults += txns.commits_kept(feeds, ops, past.scans)
    faults += txns.refusals_hidden(feeds, ops, past.scans)
    faults += txns.labels_once(feeds, ops)
    faults += txns.states_advance(past.states, ops)
    faults += txns.states_final(ops, past.finals, feeds)
    faults += leaks.nothing_left(past.of("stores"))
    faults += cycles.circles(feeds, ops, past.scans)
    return faults, feeds


def figures(past, feeds):
    """What the run did: numbers by name; those in seconds or ms are the worst ones or lists."""
    ops = list(past.ops.values())
    calls = {"ok": 0, "fail": 0, "info": 0}
    acks = []
    for op in ops:
        if op.acked:
            acks.append((op.acked, op.commit_invoked))
        if op.kind != "silent":  # whose client never asks
            calls["ok" if op.committed else "fail" if op.refused else "info"] += 1
    acks.sort()
    misfortunes = [event for event in past.of("nemesis") if event["phase"] == "begin"]
    kills = [e["t"] for e in misfortunes if e["kind"].startswith("kill ") and e.get("leads")]
    end = min([event["t"] for event in past.of("stopped")], default=past.last)
    moments = [at for at, _ in acks if at < end]
    gaps = [(b - a) / 1e9 for a, b in zip(moments, moments[1:])]
    return {
        "loads": len(ops),
        "acknowledged": sum(op.committed for op in ops),
        "versions": sum(len(feed.versions) for feed in feeds.values()),
        "scans": len(past.scans),
        "known to succeed": calls["ok"],
        "known to fail": calls["fail"],
        "unknown": calls["info"],
        "leader kills": len(kills),
        "worst unavailability s": round(max(gaps, default=0), 2),
        "worst stale read ms": txns.stale_ms(feeds, ops, past.scans),
        "next commit s": [
            round(wait, 3) for wait in (next_commit(acks, at) for at in kills) if wait is not None
        ],
    }


def next_commit(acks, at):
    """Seconds from a moment to the first answer to a commit that was asked for after it."""
    return next(((ack - at) / 1e9 for ack, asked in acks if asked > at), None)


def percentile(values, share):
    """Of a list that is not empty, the nearest rank."""
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def main():
    bad = 0
    for path in sys.argv[1:]:
        past = history.read(path)
        faults, feeds = check(past)
        for fault in faults:
            print("VIOLATION", fault)
        print(f"{path}: {len(faults)} violations; {figures(past, feeds)}")
        bad += len(faults)
    return 1 if bad or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
