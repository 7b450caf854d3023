/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a statement: a sentence with its place, or a statement whose names are names and
 * whose schema is one that can be stored. Its own text is matched against its pattern, too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "coordinator/ddl/ddl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ddl *ddl)
{
    TG_CHECK(memchr(ddl->db, 0, sizeof ddl->db) != NULL);
    TG_CHECK(memchr(ddl->table, 0, sizeof ddl->table) != NULL);
    TG_CHECK(ddl->distribution_count <= DDL_DISTRIBUTION_MAX);
    if (ddl->kind == DDL_CREATE_TABLE) {
        struct buf bytes = BUF_INIT;
        struct cursor cursor;
        struct schema again;
        schema_encode(&ddl->schema, &bytes);
        TG_CHECK(bytes.err == 0);
        cursor_init(&cursor, bytes.data, bytes.len);
        schema_init(&again);
        TG_CHECK(schema_decode(&cursor, &again) == 0);
        schema_close(&again);
        buf_close(&bytes);
    }
    if (ddl->filter == DDL_FILTER_LIKE)
        (void)ddl_like(ddl->pattern, "a_b%c\\d");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ddl ddl;
    struct tg_errmsg msg = {""};
    if (ddl_parse((const char *)data, size, &ddl, &msg) == 0)
        check(&ddl);
    else
        TG_CHECK(msg.text[0] != '\0');
    ddl_close(&ddl);
    return 0;
}
