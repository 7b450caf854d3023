#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks find what they are there for, and only that: for each rule a good history and a bad
one."""

import unittest

import checks
from workload import ROWS, Op, check_number


def rows(version, i, time_us=None, op="upsert", group=None, count=ROWS):
    """A load as the feed tells it."""
    fields = {} if group is None else {"g": group}
    return [
        {
            "_version": version,
            "_time_us": time_us or version * 10,
            "_op": op,
            "i": i,
            "s": s,
            "c": check_number(i, s),
            **fields,
        }
        for s in range(count)
    ]


def feed(*loads, kind="dup"):
    return checks.Feed(kind, [row for load in loads for row in load])


def scan(version, content, begin=10.0, end=11.0, kind="newest", asked="", table="t"):
    return (table, begin, end, kind, asked, version, version * 10, content, "node")


def op(*parts, **known):
    result = Op(known.pop("kind", "plain"), known.pop("label", "l"))
    result.parts = list(parts)
    result.commit_invoked = 1.0
    for name, value in known.items():
        setattr(result, name, value)
    return result


class Feeds(unittest.TestCase):
    def test_whole_loads_in_order_are_good(self):
        self.assertEqual(feed(rows(1, 5), rows(2, 4)).faults, [])

    def test_a_torn_load_is_found(self):
        self.assertTrue(feed(rows(1, 5, count=ROWS - 1)).faults)

    def test_a_doubled_load_is_found(self):
        self.assertTrue(feed(rows(1, 5), rows(2, 5)).faults)
        self.assertTrue(feed(rows(1, 5) + rows(1, 5)).faults)

    def test_versions_and_times_that_go_back_are_found(self):
        self.assertTrue(feed(rows(2, 5), rows(1, 4)).faults)
        self.assertTrue(feed(rows(1, 5, time_us=20), rows(2, 4, time_us=20)).faults)

    def test_a_changed_value_is_found(self):
        bad = rows(1, 5)
        bad[2]["c"] += 1
        self.assertTrue(feed(bad).faults)

    def test_a_missing_version_is_found(self):
        self.assertEqual(checks.version_numbers(feed(rows(1, 5), rows(2, 4)), 2, "t"), [])
        self.assertTrue(checks.version_numbers(feed(rows(1, 5), rows(3, 4)), 3, "t"))


class Scans(unittest.TestCase):
    def test_a_scan_shows_what_its_version_holds(self):
        good = feed(rows(1, 5), rows(2, 6))
        self.assertEqual(
            checks.scans_match(good, [scan(1, {5: 5}), scan(2, {5: 5, 6: 6})], "t"), []
        )
        self.assertTrue(checks.scans_match(good, [scan(1, {5: 5, 6: 6})], "t"))
        self.assertTrue(checks.scans_match(good, [scan(2, {6: 6})], "t"))
        self.assertTrue(checks.scans_match(good, [scan(3, {5: 5, 6: 6})], "t"))

    def test_keys_are_replaced_and_deleted(self):
        good = feed(
            rows(1, 5, group=1), rows(2, 6, group=1), rows(3, 7, op="delete", group=1), kind="unique"
        )
        scans = [scan(1, {1: 5}), scan(2, {1: 6}), scan(3, {})]
        self.assertEqual(checks.scans_match(good, scans, "t"), [])
        self.assertTrue(checks.scans_match(good, [scan(2, {1: 5})], "t"))
        self.assertTrue(checks.scans_match(good, [scan(3, {1: 6})], "t"))

    def test_an_instant_names_the_newest_version_completed_by_then(self):
        good = feed(rows(1, 5), rows(2, 6))

        def at(version, time_us):
            asked = scan(version, {}, kind="as_of", asked=f"&as_of={time_us}")
            return checks.instants_match(good, [asked], "t")

        for version, time_us in ((0, 9), (1, 10), (1, 19), (2, 20), (2, 99)):
            self.assertEqual(at(version, time_us), [])
        self.assertTrue(at(1, 20))
        self.assertTrue(at(1, 9))

    def test_reads_do_not_go_back(self):
        early, late = scan(2, {}, 1.0, 2.0), scan(1, {}, 3.0, 4.0)
        self.assertTrue(checks.reads_advance([early, late], "t"))
        self.assertEqual(checks.reads_advance([early, scan(1, {}, 1.5, 4.0)], "t"), [])


class Commits(unittest.TestCase):
    def setUp(self):
        self.feeds = {"t": feed(rows(1, 5)), "u": feed(rows(1, 6))}

    def found(self, *ops, scans=()):
        return checks.commits_show(self.feeds, list(ops), list(scans))

    def test_good_outcomes(self):
        self.assertEqual(self.found(op(("t", 5), committed=True, acked=2.0)), [])
        self.assertEqual(self.found(op(("t", 5), ("u", 6), committed=True)), [])
        self.assertEqual(self.found(op(("t", 9), refused=True), op(("t", 8))), [])

    def test_a_lost_commit_is_found(self):
        self.assertTrue(self.found(op(("t", 9), committed=True)))

    def test_an_aborted_load_that_shows_is_found(self):
        self.assertTrue(self.found(op(("t", 5), refused=True)))

    def test_two_answers_are_found(self):
        self.assertTrue(self.found(op(("t", 5), committed=True, refused=True)))

    def test_a_transaction_in_pieces_is_found(self):
        self.assertTrue(self.found(op(("t", 5), ("u", 7))))
        self.feeds["u"] = feed(rows(1, 6, time_us=11))
        self.assertTrue(self.found(op(("t", 5), ("u", 6))))

    def test_two_loads_of_one_label_are_found(self):
        one, two = op(("t", 5)), op(("u", 6))
        one.rival, two.rival = two, one
        self.assertTrue(self.found(one, two))
        two.parts = [("u", 7)]
        self.assertEqual(self.found(one, two), [])

    def test_a_read_that_lacks_an_acknowledged_commit_is_found(self):
        acked = op(("t", 5), committed=True, acked=5.0)
        self.assertTrue(self.found(acked, scans=[scan(0, {}, 6.0, 7.0)]))
        self.assertEqual(self.found(acked, scans=[scan(0, {}, 4.0, 7.0)]), [])

    def test_a_read_before_the_commit_is_found(self):
        late = op(("t", 5), commit_invoked=9.0)
        self.assertTrue(self.found(late, scans=[scan(1, {5: 5}, 6.0, 7.0)]))
        self.assertEqual(self.found(late, scans=[scan(1, {5: 5}, 6.0, 9.5)]), [])


class States(unittest.TestCase):
    def test_states_go_forward(self):
        def two(first, second, begin=3.0):
            return checks.states_advance([("l", 1.0, 2.0, first, "a"), ("l", begin, 4.0, second, "b")])

        self.assertEqual(two("PREPARE", "VISIBLE"), [])
        self.assertEqual(two("PREPARE", "ABORTED"), [])
        self.assertEqual(two("VISIBLE", "PREPARE", begin=1.5), [])
        self.assertTrue(two("VISIBLE", "COMMITTED"))
        self.assertTrue(two("ABORTED", "VISIBLE"))
        self.assertTrue(two("COMMITTED", "ABORTED"))
        self.assertTrue(two("PREPARE", "UNKNOWN"))

    def test_in_the_end_all_agree(self):
        feeds = {"t": feed(rows(1, 5))}
        seen, unseen = op(("t", 5)), op(("t", 9))

        def end(which, *answers):
            return checks.states_final([which], {"l": list(answers)}, feeds)

        self.assertEqual(end(seen, "VISIBLE", "VISIBLE"), [])
        self.assertEqual(end(unseen, "ABORTED", "ABORTED"), [])
        self.assertTrue(end(seen, "VISIBLE", "COMMITTED"))
        self.assertTrue(end(seen, "ABORTED", "ABORTED"))
        self.assertTrue(end(unseen, "VISIBLE", "VISIBLE"))
        self.assertTrue(end(unseen, "PREPARE", "PREPARE"))


if __name__ == "__main__":
    unittest.main()
