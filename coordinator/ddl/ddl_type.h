/* SPDX-License-Identifier: Apache-2.0 */
/* A column type's name with its numbers: VARCHAR(20), DECIMAL(15, 2), DATETIME(3). */
#ifndef TG_COORDINATOR_DDL_DDL_TYPE_H
#define TG_COORDINATOR_DDL_DDL_TYPE_H

#include "common/model/types.h"
#include "coordinator/ddl/ddl_lexer.h"

int ddl_type_parse(struct ddl_lexer *lexer, struct column_type *type);

#endif
