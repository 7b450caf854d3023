/* SPDX-License-Identifier: Apache-2.0 */
/* What the other coordinators' words say: who is alive, and whose clock is ahead (rule 14). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/cluster/peer_words.h"

#define WALL UINT64_C(1700000000000000)

static struct peer_words words_of(uint32_t peers)
{
    struct peer_words words = {0};
    struct coordinator_infos infos = {.count = peers + 1};

    for (uint32_t i = 0; i <= peers; i++)
        infos.list[i].id = i + 1;
    peer_words_set(&words, 1, &infos);
    assert_int_equal(words.count, peers);
    return words;
}

/* Peer `id` answers at once, its clock `ms` before WALL. */
static void hear(struct peer_words *words, uint64_t id, int64_t ms, uint64_t now_us)
{
    struct msg_status_reply status = {.coordinator = id,
                                      .wall_us = (uint64_t)((int64_t)WALL + ms * 1000)};

    peer_words_heard(words, &status, now_us);
}

static void test_alone_a_clock_is_good(void **state)
{
    struct peer_words words = words_of(0);

    (void)state;
    assert_int_equal(peer_words_clock(&words, WALL, 5), PEER_CLOCK_GOOD);
}

static void test_before_a_word_of_the_others_nothing_is_known(void **state)
{
    struct peer_words words = words_of(2);

    (void)state;
    assert_int_equal(peer_words_clock(&words, WALL, 5), PEER_CLOCK_UNKNOWN);
    hear(&words, 2, 0, 5);
    assert_int_equal(peer_words_clock(&words, WALL, 5), PEER_CLOCK_GOOD);
    assert_int_equal(peer_words_clock(&words, WALL, 5 + PEER_FRESH_MS * 1000 + 1),
                     PEER_CLOCK_UNKNOWN);
}

static void test_ahead_of_the_median_is_ahead(void **state)
{
    struct peer_words words = words_of(4);

    (void)state;
    hear(&words, 2, -60000, 5); /* one that is behind makes nobody ahead */
    hear(&words, 3, -400, 5);
    hear(&words, 4, 0, 5);
    hear(&words, 5, 60000, 5);
    assert_int_equal(peer_words_clock(&words, WALL, 5), PEER_CLOCK_GOOD);
    assert_int_equal(peer_words_clock(&words, WALL + 499000, 5), PEER_CLOCK_GOOD);
    assert_int_equal(peer_words_clock(&words, WALL + 501000, 5), PEER_CLOCK_AHEAD);
}

static void test_a_jump_is_seen_at_once_between_two_words(void **state)
{
    struct peer_words words = words_of(1);

    (void)state;
    hear(&words, 2, 0, 1000000);
    assert_int_equal(peer_words_clock(&words, WALL + 400000, 1400000), PEER_CLOCK_GOOD);
    assert_int_equal(peer_words_clock(&words, WALL + 400000 + 600000, 1400000), PEER_CLOCK_AHEAD);
}

static void test_a_slow_answer_makes_nobody_ahead(void **state)
{
    struct peer_words words = words_of(1);

    (void)state;
    /* Asked at 1 s, the peer read its clock at once, the answer took 900 ms: nobody can tell. */
    hear(&words, 2, 0, 1000000);
    assert_int_equal(peer_words_clock(&words, WALL + 900000, 1900000), PEER_CLOCK_GOOD);
    /* It read it only at the end of the 900 ms. */
    hear(&words, 2, 900, 1000000);
    assert_int_equal(peer_words_clock(&words, WALL + 900000, 1900000), PEER_CLOCK_GOOD);
}

static void test_a_clock_set_back_is_not_ahead(void **state)
{
    struct peer_words words = words_of(2);

    (void)state;
    hear(&words, 2, 3600000, 5);
    hear(&words, 3, 3600000, 5);
    assert_int_equal(peer_words_clock(&words, WALL, 5), PEER_CLOCK_GOOD);
}

static void test_one_that_is_ahead_of_the_rest_is_not_fit_to_lead(void **state)
{
    struct peer_words words = words_of(2);

    (void)state;
    hear(&words, 2, 0, 5);
    hear(&words, 3, 60000, 5);
    assert_true(peer_words_is_fit(&words, 2, WALL, 5));
    assert_false(peer_words_is_fit(&words, 3, WALL, 5));
    /* When it is this one that is behind, the others are as fit as before. */
    assert_true(peer_words_is_fit(&words, 2, WALL - 600000000, 5));
    words = words_of(1); /* of two nobody can tell who is right: the one that is behind leads */
    hear(&words, 2, -60000, 5);
    assert_true(peer_words_is_fit(&words, 2, WALL, 5));
    assert_false(peer_words_is_fit(&words, 2, WALL, 5 + PEER_ALIVE_MS * 1000 + 1));
}

static void test_signs_of_life_wear_off(void **state)
{
    struct peer_words words = words_of(1);

    (void)state;
    assert_false(peer_words_is_alive(&words, 2, 5));
    hear(&words, 2, 0, 5);
    assert_true(peer_words_is_alive(&words, 2, 5 + PEER_ALIVE_MS * 1000));
    assert_false(peer_words_is_alive(&words, 2, 6 + PEER_ALIVE_MS * 1000));
    assert_false(peer_words_is_alive(&words, 7, 5));
}

static void test_words_stay_when_the_list_changes(void **state)
{
    struct peer_words words = words_of(2);
    struct coordinator_infos infos = {.count = 3, .list = {{.id = 1}, {.id = 3}, {.id = 4}}};

    (void)state;
    hear(&words, 3, 0, 5);
    peer_words_set(&words, 1, &infos);
    assert_int_equal(words.count, 2);
    assert_true(peer_words_is_alive(&words, 3, 6));
    assert_false(peer_words_is_alive(&words, 4, 6));
}

static void test_a_full_disk_is_named_while_its_word_is_fresh(void **state)
{
    struct peer_words words = words_of(2);
    struct msg_status_reply status = {
        .coordinator = 3, .wall_us = WALL, .room = STATUS_ROOM_RESERVE};

    (void)state;
    hear(&words, 2, 0, 5);
    assert_null(peer_words_short_of_room(&words, 5));
    peer_words_heard(&words, &status, 5);
    assert_int_equal(peer_words_short_of_room(&words, 5)->id, 3);
    assert_null(peer_words_short_of_room(&words, 6 + PEER_FRESH_MS * 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_a_clock_is_good),
        cmocka_unit_test(test_before_a_word_of_the_others_nothing_is_known),
        cmocka_unit_test(test_ahead_of_the_median_is_ahead),
        cmocka_unit_test(test_a_jump_is_seen_at_once_between_two_words),
        cmocka_unit_test(test_a_slow_answer_makes_nobody_ahead),
        cmocka_unit_test(test_a_clock_set_back_is_not_ahead),
        cmocka_unit_test(test_one_that_is_ahead_of_the_rest_is_not_fit_to_lead),
        cmocka_unit_test(test_signs_of_life_wear_off),
        cmocka_unit_test(test_words_stay_when_the_list_changes),
        cmocka_unit_test(test_a_full_disk_is_named_while_its_word_is_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
