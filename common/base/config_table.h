/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of files and of flags share: finding an option and setting it from text. */
#ifndef TG_COMMON_BASE_CONFIG_TABLE_H
#define TG_COMMON_BASE_CONFIG_TABLE_H

#include "common/base/config.h"

/* The option of that name (- counts as _). TG_INVALID with the nearest known name in msg. */
int config_find(const struct config_option *options, size_t count, struct slice name, size_t *index,
                struct tg_errmsg *msg);

/* Sets one option from text. TG_INVALID with name, text and what is wanted in msg. */
int config_set(const struct config_option *option, const char *text, void *into,
               struct tg_errmsg *msg);

/* true, 1, false, 0; false for anything else. */
bool config_parse_bool(const char *text, bool *value);

#endif
