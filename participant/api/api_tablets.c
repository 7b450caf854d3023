/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/_tablets. */
#include "participant/api/api_tablets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

static int print_tablet(struct tablet_set *tablets, tablet_id tablet, uint64_t *looked_at,
                        struct json_writer *json)
{
    struct version_map map;
    struct digest chain;
    char text[2 * sizeof chain.bytes + 1];

    tablet_set_share(tablets, tablet, &map);
    int err = version_map_chain(&map, UINT64_MAX, &chain);
    for (size_t i = 0; err == 0 && i < sizeof chain.bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", chain.bytes[i]);
    if (err == 0) {
        json_writer_object(json);
        json_writer_key(json, "tablet");
        json_writer_uint(json, tablet);
        json_writer_key(json, "version");
        json_writer_uint(json, version_map_last(&map));
        json_writer_key(json, "digest");
        json_writer_str(json, text);
        json_writer_object_end(json);
    }
    *looked_at += map.version_count;
    version_map_close(&map);
    return err;
}

static int take_after(const char *query, tablet_id *after)
{
    char *end;

    *after = 0;
    if (query == NULL || query[0] == '\0')
        return 0;
    if (strncmp(query, "after=", 6) != 0 || query[6] < '0' || query[6] > '9')
        return TG_INVALID;
    *after = strtoull(query + 6, &end, 10);
    return *end == '\0' ? 0 : TG_INVALID;
}

int api_tablets_print(struct tablet_set *tablets, const char *query, struct buf *out)
{
    tablet_id after;
    uint64_t looked_at = 0;
    struct json_writer json;
    int err = take_after(query, &after);
    tablet_id *ids = malloc(API_TABLETS_MAX * sizeof *ids);

    if (err != 0 || ids == NULL) {
        free(ids);
        return err != 0 ? err : TG_NOMEM;
    }
    uint32_t count = tablet_set_list(tablets, after, ids, API_TABLETS_MAX);
    uint32_t printed = 0;
    json_writer_init(&json, out, 0);
    json_writer_object(&json);
    json_writer_key(&json, "msg");
    json_writer_str(&json, "success");
    json_writer_key(&json, "code");
    json_writer_uint(&json, 0);
    json_writer_key(&json, "data");
    json_writer_object(&json);
    json_writer_key(&json, "tablets");
    json_writer_array(&json);
    while (printed < count && err == 0 && looked_at < API_TABLETS_VERSIONS_MAX)
        err = print_tablet(tablets, ids[printed++], &looked_at, &json);
    json_writer_array_end(&json);
    json_writer_key(&json, "more");
    json_writer_bool(&json, printed < count || count == API_TABLETS_MAX);
    json_writer_object_end(&json);
    json_writer_key(&json, "count");
    json_writer_uint(&json, 0);
    json_writer_object_end(&json);
    buf_append_str(out, "\n");
    free(ids);
    return err != 0 ? err : out->err;
}
