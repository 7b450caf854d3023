/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a read whose version is known and writes its text into a stream: rows, and for _changes
 * which version did what. */
#ifndef TG_PARTICIPANT_API_READ_ANSWER_H
#define TG_PARTICIPANT_API_READ_ANSWER_H

#include "common/base/buf.h"
#include "common/base/err.h"
#include "participant/api/read_stream.h"
#include "participant/read/read_request.h"
#include "participant/read/table_reader.h"

enum {
    /* A limited answer of _changes, kept whole, ends early here: its token says where. */
    READ_CHANGES_BYTES_MAX = 16 * 1024 * 1024
};

/* 0: rest holds what is left to write before the end. Else the read failed; what was written so far
 * must not look whole. */
int read_answer_run(const struct table_reader_context *context, const struct read_request *request,
                    const struct msg_read_point_reply *point, struct read_stream *stream,
                    struct buf *rest, struct tg_errmsg *msg);
/* {"msg":"Error","code":…,"data":"sentence","count":0} */
void read_answer_error(int err, const char *sentence, struct buf *out);

#endif
