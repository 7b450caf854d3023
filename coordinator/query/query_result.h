/* SPDX-License-Identifier: Apache-2.0 */
/* A result set as Doris's HTTP query API prints it: columns, then rows of texts and numbers. */
#ifndef TG_COORDINATOR_QUERY_QUERY_RESULT_H
#define TG_COORDINATOR_QUERY_QUERY_RESULT_H

#include <stdint.h>

#include "common/base/json.h"

struct query_column {
    const char *name;
    const char *type; /* "CHAR", "BIGINT" */
};

/* {"type":"result_set","meta":[…],"data":[ and the rows follow, each an array of the caller's. */
void query_result_begin(struct json_writer *out, const struct query_column *columns, size_t count);
void query_result_end(struct json_writer *out, uint64_t time_ms);

#endif
