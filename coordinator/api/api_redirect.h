/* SPDX-License-Identifier: Apache-2.0 */
/* 307 to a participant: loads and reads. */
#ifndef TG_COORDINATOR_API_API_REDIRECT_H
#define TG_COORDINATOR_API_API_REDIRECT_H

#include "coordinator/api/api_request.h"

void api_redirect_load(struct api_request *request);
void api_redirect_read(struct api_request *request);

#endif
