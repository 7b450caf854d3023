/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the other coordinators' words. */
#include "coordinator/cluster/peer_words.h"

#include <string.h>

const struct peer_word *peer_words_find(const struct peer_words *words, uint64_t id)
{
    for (uint32_t i = 0; i < words->count; i++)
        if (words->list[i].id == id)
            return &words->list[i];
    return NULL;
}

void peer_words_set(struct peer_words *words, uint64_t self, const struct coordinator_infos *infos)
{
    struct peer_words old = *words;

    words->count = 0;
    for (uint32_t i = 0; i < infos->count && words->count < PEER_WORDS_MAX; i++) {
        const struct peer_word *known = peer_words_find(&old, infos->list[i].id);
        struct peer_word *word = &words->list[words->count];

        if (infos->list[i].id == self)
            continue;
        words->count++;
        if (known != NULL)
            *word = *known;
        else
            *word = (struct peer_word){.id = infos->list[i].id};
        memcpy(word->rpc, infos->list[i].rpc, sizeof word->rpc);
    }
}

void peer_words_heard(struct peer_words *words, const struct msg_status_reply *status,
                      uint64_t asked_us)
{
    struct peer_word *word = (struct peer_word *)peer_words_find(words, status->coordinator);

    if (word == NULL || status->phase != STATUS_SERVES)
        return;
    word->asked_us = asked_us > 0 ? asked_us : 1;
    word->wall_us = status->wall_us;
    word->leader = status->leader;
    word->applied_index = status->applied_index;
    word->room = status->room;
    word->disk_free_bytes = status->disk_free_bytes;
}

static bool heard_within(const struct peer_word *word, uint64_t now_us, uint64_t ms)
{
    return word->asked_us != 0 && now_us - word->asked_us <= ms * 1000;
}

bool peer_words_is_alive(const struct peer_words *words, uint64_t id, uint64_t now_us)
{
    const struct peer_word *word = peer_words_find(words, id);

    return word != NULL && heard_within(word, now_us, PEER_ALIVE_MS);
}

/* The peer read its clock after it was asked, so it now shows no more than this: a slow network
 * can only make this node look less ahead than it is. */
bool peer_words_ahead(const struct peer_word *word, uint64_t wall_us, uint64_t now_us,
                      int64_t *ahead_us)
{
    if (!heard_within(word, now_us, PEER_FRESH_MS))
        return false;
    *ahead_us = (int64_t)(wall_us - (word->wall_us + (now_us - word->asked_us)));
    return true;
}

enum peer_clock peer_words_clock(const struct peer_words *words, uint64_t wall_us, uint64_t now_us)
{
    int64_t sorted[PEER_WORDS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < words->count; i++) {
        int64_t ahead;
        uint32_t at = count;

        if (!peer_words_ahead(&words->list[i], wall_us, now_us, &ahead))
            continue;
        for (; at > 0 && sorted[at - 1] > ahead; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = ahead;
        count++;
    }
    if (count == 0)
        return words->count == 0 ? PEER_CLOCK_GOOD : PEER_CLOCK_UNKNOWN;
    return sorted[(count - 1) / 2] > PEER_CLOCK_AHEAD_US_MAX ? PEER_CLOCK_AHEAD : PEER_CLOCK_GOOD;
}

/* All clocks as they are before the own one: a peer is ahead if it is before most of the others. */
bool peer_words_is_fit(const struct peer_words *words, uint64_t id, uint64_t wall_us,
                       uint64_t now_us)
{
    const struct peer_word *word = peer_words_find(words, id);
    uint32_t others = 1; /* this node */
    uint32_t passed = 0;
    int64_t mine;
    int64_t its;

    if (!peer_words_is_alive(words, id, now_us) || word->room != STATUS_ROOM_FREE ||
        !peer_words_ahead(word, wall_us, now_us, &mine))
        return false;
    passed += -mine > PEER_CLOCK_AHEAD_US_MAX;
    for (uint32_t i = 0; i < words->count; i++) {
        if (words->list[i].id == id || !peer_words_ahead(&words->list[i], wall_us, now_us, &its))
            continue;
        others++;
        passed += its - mine > PEER_CLOCK_AHEAD_US_MAX;
    }
    return passed * 2 <= others;
}

const struct peer_word *peer_words_short_of_room(const struct peer_words *words, uint64_t now_us)
{
    for (uint32_t i = 0; i < words->count; i++)
        if (heard_within(&words->list[i], now_us, PEER_FRESH_MS) &&
            words->list[i].room != STATUS_ROOM_FREE)
            return &words->list[i];
    return NULL;
}
