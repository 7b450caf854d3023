/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all that is bound here, over and over, slowly: so that damage which no read has met is
 * found while other copies are good. A thread of its own; what is found goes the way of damage that
 * a read finds (damage_list.h). */
#ifndef TG_PARTICIPANT_MAINTAIN_SCRUBBER_H
#define TG_PARTICIPANT_MAINTAIN_SCRUBBER_H

#include "common/base/clock.h"
#include "participant/maintain/damage_list.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

enum {
    SCRUB_LOOK_MS = 200,       /* how often a resting scrubber looks whether it is to go on */
    SCRUB_SECOND_LOOK_MS = 500 /* what looks damaged is read again after so long: a repair may have
                                  been replacing it */
};

struct scrubber_options {
    struct store *store;
    struct tablet_set *tablets;
    struct damage_list *damage;
    struct clock *clock;
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t interval_ms; /* from the begin of a pass to that of the next one; 0: nothing is read */
};

struct scrubber_state {
    bool under_way;      /* else it rests until the next pass is due */
    tablet_id tablet;    /* that is being read */
    uint64_t passes;     /* completed */
    uint64_t bytes;      /* read by all of them, and by this one */
    uint64_t rowsets;    /* the same */
    uint64_t damaged;    /* tablets in which damage was found */
    uint64_t pass_ms;    /* how long the last complete pass took */
    uint64_t pass_bytes; /* … and what it read */
};

struct scrubber;

int scrubber_open(const struct scrubber_options *options, struct scrubber **scrubber);
/* Stops in the middle of a pass; joins the thread. */
void scrubber_close(struct scrubber *scrubber);
/* Any thread; never waits for the disk. */
void scrubber_look(struct scrubber *scrubber, struct scrubber_state *state);

#endif
