/* SPDX-License-Identifier: Apache-2.0 */
/* A column type's name with its numbers: VARCHAR(20), DECIMAL(15, 2), DATETIME(3). */
#ifndef TG_COORDINATOR_DDL_DDL_TYPE_H
#define TG_COORDINATOR_DDL_DDL_TYPE_H

#include "common/model/types.h"
#include "coordinator/ddl/ddl_lexer.h"

/* From the current token on. Returns lexer->err: TG_SYNTAX, TG_UNSUPPORTED, or TG_INVALID for
 * lengths and scales out of bounds. */
int ddl_type_parse(struct ddl_lexer *lexer, struct column_type *type);

#endif
