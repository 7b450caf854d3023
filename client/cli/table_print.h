/* SPDX-License-Identifier: Apache-2.0 */
/* A result set {"meta":[…],"data":[[…]]} as a table with aligned columns. */
#ifndef TG_CLIENT_CLI_TABLE_PRINT_H
#define TG_CLIENT_CLI_TABLE_PRINT_H

#include <stdio.h>

#include "common/base/json.h"

enum { TABLE_COLUMNS_MAX = 64, TABLE_WIDTH_MAX = 60 /* beyond, a column is not padded */ };

/* False if value is no result set: nothing is printed then. */
bool table_print(const struct json_value *value, FILE *out);

#endif
