/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON answer of a load, field by field as Doris's clients expect it. Pure. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_ANSWER_H
#define TG_PARTICIPANT_INGEST_LOAD_ANSWER_H

#include "common/base/buf.h"
#include "participant/ingest/stream_load.h"

/* address: "host:port" of this node for ErrorURL. result->status is not LOAD_UNKNOWN. Ends with a
 * newline. */
void load_answer_print(const struct load_options *options, const struct load_result *result,
                       const char *address, struct buf *out);

#endif
