/* SPDX-License-Identifier: Apache-2.0 */
/* _stream_load_2pc, executed here whoever leads. */
#ifndef TG_COORDINATOR_API_API_TXN_H
#define TG_COORDINATOR_API_API_TXN_H

#include "coordinator/api/api_request.h"

void api_txn_2pc(struct api_request *request, const char *db);

#endif
