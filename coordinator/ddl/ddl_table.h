/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE TABLE, from behind the table's name on. */
#ifndef TG_COORDINATOR_DDL_DDL_TABLE_H
#define TG_COORDINATOR_DDL_DDL_TABLE_H

#include "coordinator/ddl/ddl.h"
#include "coordinator/ddl/ddl_lexer.h"

/* Fills schema, distribution, properties. Returns lexer->err. */
int ddl_table_parse(struct ddl_lexer *lexer, struct ddl *ddl);

#endif
