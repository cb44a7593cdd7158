/*
 * The two tables of the box as data: what is known of a service and of an operation.
 * Everything else in the request pipeline is the same for all of them.
 */
#ifndef STK_AWS_OPERATION_H
#define STK_AWS_OPERATION_H

#include "aws/aws.h"
#include "aws/pace.h"

enum aws_protocol { PROTOCOL_S3, PROTOCOL_JSON, PROTOCOL_REST_JSON, PROTOCOL_QUERY };

enum aws_service {
#define SERVICE(id, ...) SERVICE_##id,
#include "aws/services.def"
#undef SERVICE
};

struct service_row {
	const char *host;    /* with {r} and {d} */
	const char *signing; /* "": its requests are not signed */
	enum aws_protocol protocol;
	const char *content_type;
	const char *prefix; /* of X-Amz-Target, or the API's version */
	const char *suffix;
};

/* As in operations.def. */
enum {
	OPERATION_UNSIGNED = 1,
	OPERATION_ONCE = 2,
	OPERATION_ERROR_200 = 4,
	OPERATION_CHECKSUM = 8,
	OPERATION_SECRET = 16,
};

struct operation_row {
	enum aws_service service;
	const char *name, *method, *path;
	int flags;
};

const struct operation_row *operation_row(enum aws_operation operation);
/* As in rates.def; of an operation that is not there, a rate of 0. */
const struct pace_rate *operation_rate(enum aws_operation operation);
const struct service_row *service_row(enum aws_service service);

#endif
