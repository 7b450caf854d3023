/* SPDX-License-Identifier: Apache-2.0 */
/* What the other coordinators said of themselves last, and what follows from it: who is alive, and
 * whether the own clock is ahead of theirs. Pure: clocks are handed in. */
#ifndef TG_COORDINATOR_CLUSTER_PEER_WORDS_H
#define TG_COORDINATOR_CLUSTER_PEER_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ids.h"
#include "common/proto/msg_status.h"

enum {
    PEER_ASK_MS = 500,                /* between two questions */
    PEER_ANSWER_MS = 1000,            /* for one answer */
    PEER_ALIVE_MS = 2500,             /* as long counts an answer as a sign of life … */
    PEER_FRESH_MS = 10000,            /* … and its clock and disk as known */
    PEER_CLOCK_AHEAD_US_MAX = 500000, /* more than this before the others is too much (rule 14) */
    PEER_WORDS_MAX = COORDINATORS_MAX
};

enum peer_clock {
    PEER_CLOCK_GOOD = 0,
    PEER_CLOCK_UNKNOWN, /* there are peers, and none has been heard lately */
    PEER_CLOCK_AHEAD    /* this node must neither stamp nor lead */
};

struct peer_word {
    uint64_t id;
    char rpc[ADDRESS_BYTES];
    uint64_t asked_us; /* monotonic, when the answered question went out; 0: never answered */
    uint64_t wall_us;  /* its clock, read after that */
    uint64_t leader;
    uint64_t applied_index;
    enum status_room room;
    uint64_t disk_free_bytes;
};

struct peer_words {
    uint32_t count;
    struct peer_word list[PEER_WORDS_MAX]; /* without this node */
};

const struct peer_word *peer_words_find(const struct peer_words *words, uint64_t id);
/* Keeps what was heard of those that stay. infos: all coordinators, self included. */
void peer_words_set(struct peer_words *words, uint64_t self, const struct coordinator_infos *infos);
/* asked_us: monotonic, before the question went out. */
void peer_words_heard(struct peer_words *words, const struct msg_status_reply *status,
                      uint64_t asked_us);
bool peer_words_is_alive(const struct peer_words *words, uint64_t id, uint64_t now_us);
/* How far the own wall clock is at least before the peer's; negative if it is behind. False if the
 * peer has not been heard lately. */
bool peer_words_ahead(const struct peer_word *word, uint64_t wall_us, uint64_t now_us,
                      int64_t *ahead_us);
/* Judged by the median of the peers heard lately, of two in the middle the kinder one. */
enum peer_clock peer_words_clock(const struct peer_words *words, uint64_t wall_us, uint64_t now_us);
/* Alive, with room on its disk, and not ahead of the median of all, this node's clock included. */
bool peer_words_is_fit(const struct peer_words *words, uint64_t id, uint64_t wall_us,
                       uint64_t now_us);
/* The first one heard lately whose disk is under its reserve; NULL if there is none. */
const struct peer_word *peer_words_short_of_room(const struct peer_words *words, uint64_t now_us);

#endif
