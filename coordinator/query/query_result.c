/* SPDX-License-Identifier: Apache-2.0 */
/* A result set as Doris's HTTP query API prints it. */
#include "coordinator/query/query_result.h"

void query_result_begin(struct json_writer *out, const struct query_column *columns, size_t count)
{
    json_writer_object(out);
    json_writer_key(out, "type");
    json_writer_str(out, "result_set");
    json_writer_key(out, "meta");
    json_writer_array(out);
    for (size_t i = 0; i < count; i++) {
        json_writer_object(out);
        json_writer_key(out, "name");
        json_writer_str(out, columns[i].name);
        json_writer_key(out, "type");
        json_writer_str(out, columns[i].type);
        json_writer_object_end(out);
    }
    json_writer_array_end(out);
    json_writer_key(out, "data");
    json_writer_array(out);
}

void query_result_end(struct json_writer *out, uint64_t time_ms)
{
    json_writer_array_end(out);
    json_writer_key(out, "status");
    json_writer_object(out);
    json_writer_object_end(out);
    json_writer_key(out, "time");
    json_writer_uint(out, time_ms);
    json_writer_object_end(out);
}
