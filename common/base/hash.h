/* SPDX-License-Identifier: Apache-2.0 */
/* uthash, which without memory ends the process as everything here does, not with exit(-1). */
#ifndef TG_COMMON_BASE_HASH_H
#define TG_COMMON_BASE_HASH_H

#include "common/base/check.h"

#define uthash_fatal(message) tg_no_memory(__FILE__, __LINE__)
#include <uthash.h>

#endif
