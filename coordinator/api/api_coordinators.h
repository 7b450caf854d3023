/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/coordinators, POST /api/coordinators/add|drop|transfer; GET /api/state. */
#ifndef TG_COORDINATOR_API_API_COORDINATORS_H
#define TG_COORDINATOR_API_API_COORDINATORS_H

#include "coordinator/api/api_request.h"

/* verb: "list", "add", "drop" or "transfer"; its parameters are in the query string. */
void api_coordinators(struct api_request *request, const char *verb);
/* GET /api/state: how far this coordinator has applied, and a hash of its state. */
void api_state(struct api_request *request);

#endif
