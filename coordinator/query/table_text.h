/* SPDX-License-Identifier: Apache-2.0 */
/* A table as the CREATE TABLE statement that makes one like it. */
#ifndef TG_COORDINATOR_QUERY_TABLE_TEXT_H
#define TG_COORDINATOR_QUERY_TABLE_TEXT_H

#include "common/base/buf.h"
#include "coordinator/state/catalog.h"

/* Appends the statement; coordinator/ddl reads it back. */
void table_text_print(const struct table *table, struct buf *out);

#endif
