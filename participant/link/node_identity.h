/* SPDX-License-Identifier: Apache-2.0 */
/* Who this participant is in the cluster right now: set by registration, read by everybody who
 * sends or checks a call. */
#ifndef TG_PARTICIPANT_LINK_NODE_IDENTITY_H
#define TG_PARTICIPANT_LINK_NODE_IDENTITY_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/model/ids.h"

struct node_identity {
    _Atomic node_id node; /* 0 before the first registration */
    _Atomic uint64_t epoch;
};

#endif
