#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks find what they are there for, and only that: for each rule a good history and a bad
one."""

import json
import os
import tempfile
import unittest

import checks
import cycles
import history
import leaks
import nemesis
import table_checks as tables
import txn_checks as txns
from writers import ROWS, check_number

S = 1_000_000_000


def rows(version, i, time_us=None, op="upsert", group=None, count=ROWS):
    """A load as the feed tells it."""
    more = [] if group is None else [group]
    time_us = time_us or version * 10
    return [[version, time_us, op, i, s, check_number(i, s), *more] for s in range(count)]


def feed(*loads, kind="dup"):
    return tables.Feed(kind, [row for load in loads for row in load])


def scan(version, content, begin=10, end=11, how="newest", asked="", table="t", **more):
    invoke = {"table": table, "t": begin * S, "how": how, "asked": asked, "node": "n", **more}
    unique = isinstance(content, dict)
    value = {str(g): i for g, i in content.items()} if unique else content
    event = {"t": end * S, "ver": version, "as_of": version * 10, "val": value, **more}
    return history.Scan(invoke, event, "unique" if unique else "dup")


def op(*parts, **known):
    result = history.Op(1, known.pop("kind", "plain"), known.pop("label", "l"))
    result.parts = list(parts)
    result.begun = result.commit_invoked = 1 * S
    for name, value in known.items():
        setattr(result, name, value)
    return result


class Case(unittest.TestCase):
    def good(self, faults):
        self.assertEqual(faults, [])

    def bad(self, faults):
        self.assertTrue(faults)


class Feeds(Case):
    def test_whole_loads_in_order_are_good(self):
        self.good(feed(rows(1, 5), rows(2, 4)).faults)

    def test_a_torn_load_is_found(self):
        self.bad(feed(rows(1, 5, count=ROWS - 1)).faults)

    def test_a_doubled_load_is_found(self):
        self.bad(feed(rows(1, 5), rows(2, 5)).faults)
        self.bad(feed(rows(1, 5) + rows(1, 5)).faults)

    def test_versions_and_times_that_go_back_are_found(self):
        self.bad(feed(rows(2, 5), rows(1, 4)).faults)
        self.bad(feed(rows(1, 5, time_us=20), rows(2, 4, time_us=20)).faults)

    def test_a_changed_value_is_found(self):
        wrong = rows(1, 5)
        wrong[2][5] += 1
        self.bad(feed(wrong).faults)

    def test_a_missing_version_is_found(self):
        self.good(tables.versions_contiguous(feed(rows(1, 5), rows(2, 4)), 2, "t"))
        self.bad(tables.versions_contiguous(feed(rows(1, 5), rows(3, 4)), 3, "t"))


class Scans(Case):
    def test_a_torn_read_is_found(self):
        self.good(tables.scans_whole([scan(1, [5])]))
        self.bad(tables.scans_whole([scan(1, [], torn="torn: 5 has 3 rows")]))

    def test_a_scan_shows_what_its_version_holds(self):
        good = feed(rows(1, 5), rows(2, 6))
        self.good(tables.scans_match(good, [scan(1, [5]), scan(2, [5, 6])], "t"))
        self.bad(tables.scans_match(good, [scan(1, [5, 6])], "t"))
        self.bad(tables.scans_match(good, [scan(2, [6])], "t"))
        self.bad(tables.scans_match(good, [scan(3, [5, 6])], "t"))

    def test_keys_are_replaced_and_deleted(self):
        good = feed(rows(1, 5, group=1), rows(2, 6, group=1), rows(3, 7, op="delete", group=1),
                    kind="unique")
        self.good(tables.scans_match(good, [scan(1, {1: 5}), scan(2, {1: 6}), scan(3, {})], "t"))
        self.bad(tables.scans_match(good, [scan(2, {1: 5})], "t"))
        self.bad(tables.scans_match(good, [scan(3, {1: 6})], "t"))

    def test_versions_that_change_are_found(self):
        self.good(tables.reads_repeat([scan(1, [5]), scan(1, [5], how="as_of"), scan(2, [5, 6])]))
        self.bad(tables.reads_repeat([scan(1, [5]), scan(1, [5, 6], how="version")]))

    def test_an_instant_names_the_newest_version_completed_by_then(self):
        good = feed(rows(1, 5), rows(2, 6))

        def at(version, time_us):
            asked = scan(version, [], how="as_of", asked=f"&as_of={time_us}")
            return tables.instants_match(good, [asked])

        for version, time_us in ((0, 9), (1, 10), (1, 19), (2, 20), (2, 99)):
            self.good(at(version, time_us))
        self.bad(at(1, 20))
        self.bad(at(1, 9))

    def test_reads_do_not_go_back(self):
        early, late = scan(2, [], 1, 2), scan(1, [], 3, 4)
        self.bad(tables.reads_advance([early, late], "t"))
        self.good(tables.reads_advance([early, scan(1, [], 1.5, 4)], "t"))

    def test_a_fractured_read_is_found(self):
        feeds = {"t": feed(rows(1, 5)), "u": feed(rows(1, 6))}
        both = [op(("t", 5), ("u", 6))]

        def two(t, u):
            reads = [scan(t, [], snap=1), scan(u, [], table="u", snap=1)]
            return tables.snapshots_whole(feeds, both, reads)

        self.good(two(1, 1))
        self.good(two(0, 0))
        self.bad(two(1, 0))


class Followers(Case):
    whole = rows(1, 5) + rows(2, 6)

    @staticmethod
    def pull(position, to, some):
        return {"f": "incr", "from": position, "to": to, "rows": some}

    def found(self, *events):
        return tables.puller_exact("pull t", list(events), self.whole)

    def test_pieces_make_the_whole(self):
        one, two = self.pull("after=0", "a", self.whole[:4]), self.pull("a", "b", self.whole[4:])
        self.good(self.found(one, two))
        self.good(self.found(one, {"f": "restart", "at": "after=0"}, one, two))
        again = self.pull("after=0", "b", self.whole)
        self.good(self.found(one, two, {"f": "restart", "at": "after=0"}, again))

    def test_what_is_missing_doubled_or_foreign_is_found(self):
        self.bad(self.found(self.pull("after=0", "a", self.whole[:9])))
        self.bad(self.found(self.pull("after=0", "a", self.whole + rows(2, 6))))
        self.bad(self.found(self.pull("after=0", "a", self.whole + rows(3, 9))))
        self.bad(self.found(self.pull("after=0", "a", rows(2, 6) + rows(1, 5))))

    def test_another_answer_to_the_same_question_is_found(self):
        one = self.pull("after=0", "a", self.whole)
        other = self.pull("after=0", "a", rows(2, 6) + rows(1, 5))
        self.bad(self.found(one, {"f": "restart", "at": "after=0"}, other))


class Copies(Case):
    def test_timelines_are_the_same_everywhere(self):
        def two(*entries, other=None):
            facts = [{"node": "a", "table": "t", "val": list(entries)},
                     {"node": "b", "table": "t", "val": other or list(entries)}]
            return tables.timelines_agree(facts)

        self.good(two([1, 10, "deltacommit", "x"], [2, 20, "deltacommit", "y"]))
        self.bad(two([1, 10, "", "x"], [2, 20, "", "y"], other=[[1, 10, "", "x"]]))
        self.bad(two([1, 10, "", "x"], [3, 20, "", "y"]))
        self.bad(two([1, 10, "", "x"], [2, 10, "", "y"]))

    def test_a_timeline_is_that_of_the_feed(self):
        good = {"table": "t", "node": "a", "val": [[1, 10, "", "x"]]}
        self.good(tables.timeline_is_feed(feed(rows(1, 5)), good))
        self.bad(tables.timeline_is_feed(feed(rows(1, 5, time_us=11)), good))
        self.bad(tables.timeline_is_feed(feed(rows(1, 5), rows(2, 6)), good))

    def test_replicas_that_differ_are_found(self):
        def two(version, digest):
            return tables.replicas_agree([{"node": "a", "val": {"1": [4, "x"]}},
                                          {"node": "b", "val": {"1": [version, digest]}}])

        self.good(two(4, "x"))
        self.good(two(3, "y"))
        self.bad(two(4, "y"))

    def test_states_that_differ_are_found(self):
        one = {"node": "a", "at": 7, "hash": "x"}
        self.good(tables.states_equal([one, one, {"node": "b", "at": 8, "hash": "y"}]))
        self.bad(tables.states_equal([one, {"node": "b", "at": 7, "hash": "y"}]))

    def test_what_is_left_in_a_store_is_found(self):
        def store(**changed):
            val = {"staged": [], "rowsets": [[1, 7]], "bound": [[1, 7]], "blocks": [[1, 7]],
                   "strays": [], **changed}
            return {"node": "a", "val": val}

        self.good(leaks.nothing_left([store(), store()]))
        self.good(leaks.nothing_left([store(blocks=[])]))
        self.bad(leaks.nothing_left([store(staged=[[3, 8, 1]])]))
        self.bad(leaks.nothing_left([store(rowsets=[[1, 7], [1, 8]])]))
        self.bad(leaks.nothing_left([store(rowsets=[], blocks=[])]))
        self.bad(leaks.nothing_left([store(blocks=[[1, 9]])]))
        self.bad(leaks.nothing_left([store(strays=["core"])]))
        self.bad(leaks.nothing_left([store(), store(bound=[], rowsets=[], blocks=[])]))


class Commits(Case):
    def setUp(self):
        self.feeds = {"t": feed(rows(1, 5)), "u": feed(rows(1, 6))}

    def found(self, *ops, scans=()):
        return txns.commits_kept(self.feeds, list(ops), list(scans))

    def test_good_outcomes(self):
        self.good(self.found(op(("t", 5), committed=True, acked=2 * S)))
        self.good(self.found(op(("t", 5), ("u", 6), committed=True)))
        self.good(self.found(op(("t", 9), refused=True), op(("t", 8))))

    def test_a_lost_commit_is_found(self):
        self.bad(self.found(op(("t", 9), committed=True)))

    def test_two_answers_are_found(self):
        self.bad(self.found(op(("t", 5), committed=True, refused=True)))

    def test_a_commit_that_nobody_asked_for_is_found(self):
        self.bad(self.found(op(("t", 5), commit_invoked=None)))

    def test_a_transaction_in_pieces_is_found(self):
        self.bad(self.found(op(("t", 5), ("u", 7))))
        self.feeds["u"] = feed(rows(1, 6, time_us=11))
        self.bad(self.found(op(("t", 5), ("u", 6))))

    def test_a_read_that_lacks_an_acknowledged_commit_is_found(self):
        acked = op(("t", 5), committed=True, acked=5 * S)
        self.bad(self.found(acked, scans=[scan(0, [], 6, 7)]))
        self.bad(self.found(acked, scans=[scan(1, [5], 5.1, 5.2), scan(0, [], 6, 7)]))
        self.good(self.found(acked, scans=[scan(0, [], 4, 7), scan(1, [5], 8, 9)]))

    def test_a_read_before_the_commit_is_found(self):
        late = op(("t", 5), commit_invoked=9 * S)
        self.bad(self.found(late, scans=[scan(1, [5], 6, 7), scan(1, [5], 8, 12)]))
        self.good(self.found(late, scans=[scan(1, [5], 6, 9.5)]))

    def test_an_aborted_load_that_shows_is_found(self):
        self.bad(txns.refusals_hidden(self.feeds, [op(("t", 5), refused=True)], []))
        aborted = op(("t", 9), refused=True)
        self.bad(txns.refusals_hidden(self.feeds, [aborted], [scan(1, [5, 9])]))
        self.good(txns.refusals_hidden(self.feeds, [aborted, op(("t", 5))], [scan(1, [5])]))

    def test_two_loads_of_one_label_are_found(self):
        one, two = op(("t", 5)), op(("u", 6))
        self.bad(txns.labels_once(self.feeds, [one, two]))
        two.parts = [("u", 7)]
        self.good(txns.labels_once(self.feeds, [one, two]))
        one.committed = two.committed = True
        self.bad(txns.labels_once(self.feeds, [one, two]))


class States(Case):
    def test_states_go_forward(self):
        def two(first, second, begin=3, ops=()):
            answers = [("l", 1 * S, 2 * S, first, "a"), ("l", int(begin * S), 4 * S, second, "b")]
            return txns.states_advance(answers, ops)

        self.good(two("PREPARE", "VISIBLE"))
        self.good(two("PREPARE", "ABORTED"))
        self.good(two("VISIBLE", "PREPARE", begin=1.5))
        self.bad(two("VISIBLE", "COMMITTED"))
        self.bad(two("ABORTED", "VISIBLE"))
        self.bad(two("COMMITTED", "ABORTED"))
        self.bad(two("PREPARE", "UNKNOWN"))
        reload = [op(reload=True, begun=int(2.5 * S))]
        self.good(two("ABORTED", "VISIBLE", ops=reload))
        self.bad(two("VISIBLE", "ABORTED", ops=reload))
        self.good(two("ABORTED", "PREPARE", ops=[op(kind="retry")]))
        self.bad(two("VISIBLE", "ABORTED", ops=[op(kind="retry")]))
        self.bad(two("ABORTED", "PREPARE", ops=[op(reload=True, begun=9 * S)]))

    def test_in_the_end_all_agree(self):
        feeds = {"t": feed(rows(1, 5))}
        seen, unseen = op(("t", 5)), op(("t", 9))

        def end(which, *answers):
            return txns.states_final([which], {"l": list(answers)}, feeds)

        self.good(end(seen, "VISIBLE", "VISIBLE"))
        self.good(end(unseen, "ABORTED", "ABORTED"))
        self.bad(end(seen, "VISIBLE", "COMMITTED"))
        self.bad(end(seen, "ABORTED", "ABORTED"))
        self.bad(end(unseen, "VISIBLE", "VISIBLE"))
        self.bad(end(unseen, "PREPARE", "PREPARE"))


class Circles(Case):
    def setUp(self):
        self.feeds = {"t": feed(rows(1, 5), rows(2, 6)), "u": feed(rows(1, 7), rows(2, 8))}

    def found(self, ops, scans=()):
        return cycles.circles(self.feeds, ops, list(scans))

    def test_one_after_the_other_is_good(self):
        ops = [op(("t", 5), ("u", 7), label="a", acked=2 * S),
               op(("t", 6), ("u", 8), label="b", commit_invoked=3 * S, acked=4 * S)]
        reads = [scan(1, [5], 2.1, 2.9), scan(2, [5, 6], 5, 6)]
        self.good(self.found(ops, reads))

    def test_two_orders_of_writes_are_found(self):
        self.bad(self.found([op(("t", 5), ("u", 8), label="a"), op(("t", 6), ("u", 7), label="b")]))

    def test_a_read_that_splits_transactions_is_found(self):
        ops = [op(("t", 5), ("u", 7), label="a"), op(("t", 6), ("u", 8), label="b")]
        split = [scan(2, [5, 6], snap=3, how="as_of"), scan(1, [7], table="u", snap=3, how="as_of")]
        self.bad(self.found(ops, split))

    def test_an_order_against_the_clock_is_found(self):
        ops = [op(("t", 6), label="a", acked=2 * S),
               op(("t", 5), label="b", commit_invoked=3 * S, acked=4 * S)]
        self.bad(self.found(ops))

    def test_a_read_from_the_future_is_found(self):
        self.bad(self.found([op(("t", 5), label="a", commit_invoked=9 * S)], [scan(1, [5], 6, 7)]))


class Events(Case):
    """Whole files: what is written is read, and complaints of the run itself count."""

    def run_check(self, *events):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
            for t, event in enumerate(events):
                print(json.dumps({"t": (t + 1) * S, "p": "x", "type": "info", **event}), file=file)
        try:
            past = history.read(file.name)
        finally:
            os.remove(file.name)
        faults, feeds = checks.check(past)
        return faults, checks.figures(past, feeds)

    def load(self, n, status, own=True, kind="plain"):
        at = {"p": "w", "op": 1, "kind": kind, "label": "l", "n": n, "f": "load"}
        answer = json.dumps({"Status": status, "TxnId": 4})
        return [{**at, "type": "invoke", "own": own, "table": "t", "i": 5},
                {**at, "type": "ok" if status == "Success" else "fail", "text": answer}]

    def whole(self, *some):
        at = {"p": "whole t", "f": "incr", "n": 99}
        return [{**at, "type": "invoke", "table": "t", "from": "after=0"},
                {**at, "type": "ok", "to": "a", "rows": [row for load in some for row in load]}]

    tables = {"f": "tables", "val": {"t": "dup"}}

    def test_a_good_run(self):
        faults, figures = self.run_check(self.tables, *self.load(1, "Success"),
                                         *self.whole(rows(1, 5)),
                                         {"f": "final", "label": "l", "val": ["VISIBLE"] * 3})
        self.good(faults)
        self.assertEqual((figures["acknowledged"], figures["versions"]), (1, 1))

    def test_a_lost_load(self):
        self.bad(self.run_check(self.tables, *self.load(1, "Success"), *self.whole())[0])

    def test_a_failed_load_that_shows(self):
        self.bad(self.run_check(self.tables, *self.load(1, "Fail"), *self.whole(rows(1, 5)))[0])

    def test_a_cut_load_that_shows(self):
        invoke = self.load(1, "Success", kind="cut")[:1]
        self.bad(self.run_check(self.tables, *invoke, *self.whole(rows(1, 5)))[0])

    def test_an_unknown_outcome_may_be_either(self):
        invoke, _ = self.load(1, "Success")
        unknown = {**invoke, "type": "info", "text": "closed"}
        for shown in ([rows(1, 5)], []):
            self.good(self.run_check(self.tables, invoke, unknown, *self.whole(*shown))[0])

    def test_complaints_of_the_run(self):
        for event in (
            {"f": "violation", "text": "a client hangs"},
            {"f": "died", "node": "c1", "status": -11, "tail": ""},
            {"f": "survived", "node": "p1", "tail": ""},
            {"f": "stop", "node": "p1", "took": None, "tail": ""},
            {"f": "stop", "node": "p1", "took": 9.0, "tail": ""},
            {"f": "settled", "s": 30, "open": ["l"]},
            {"f": "repaired", "s": 60, "behind": {"t": 1}},
        ):
            self.bad(self.run_check(event)[0])
        self.good(self.run_check({"f": "stop", "node": "p1", "took": 1.0, "tail": ""},
                                 {"f": "settled", "s": 1, "open": []},
                                 {"f": "repaired", "s": 1, "behind": {}})[0])

    def test_the_wait_after_a_leader_kill(self):
        acks = [(5 * S, 1 * S), (6 * S, 4 * S)]
        self.assertEqual(checks.next_commit(acks, 3 * S), 3.0)
        self.assertIsNone(checks.next_commit(acks, 5 * S))


class Percentiles(Case):
    def test_the_nearest_rank(self):
        self.assertEqual(checks.percentile([5], 0.99), 5)
        self.assertEqual(checks.percentile(range(1, 201), 0.99), 198)
        self.assertEqual(checks.percentile([3, 1, 2], 0.5), 2)


class Hands(Case):
    def test_every_kind_has_its_turn_and_three_at_most(self):
        hands = nemesis.deal(8, 1, list(nemesis.KINDS), ["kill"])
        self.assertEqual({kind for hand in hands for kind in hand}, set(nemesis.KINDS))
        self.assertEqual({len(set(hand)) for hand in hands}, {3})
        self.assertTrue(all("kill" in hand for hand in hands))


if __name__ == "__main__":
    unittest.main()
