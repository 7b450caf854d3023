/* SPDX-License-Identifier: Apache-2.0 */
/* SQL LIKE without backtracking over more than the last '%'. */
#include "coordinator/ddl/ddl.h"

bool ddl_like(const char *pattern, const char *text)
{
    const char *after_percent = NULL;
    const char *retry = NULL;

    while (*text != 0) {
        if (*pattern == '%') {
            after_percent = ++pattern;
            retry = text;
        } else if (*pattern == '\\' && pattern[1] != 0 && pattern[1] == *text) {
            pattern += 2;
            text++;
        } else if (*pattern != '\\' && *pattern != 0 && (*pattern == '_' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (after_percent != NULL) {
            pattern = after_percent;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '%')
        pattern++;
    return *pattern == 0;
}
