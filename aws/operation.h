/*
 * The tables services.def and operations.def as data. Everything else in the request pipeline is
 * the same for all services and operations.
 */
#ifndef STK_AWS_OPERATION_H
#define STK_AWS_OPERATION_H

#include "aws/aws.h"
#include "aws/http/rate_limit.h"
#include "aws/policy/resource.h"

enum aws_protocol { PROTOCOL_S3, PROTOCOL_JSON, PROTOCOL_REST_JSON, PROTOCOL_QUERY };

enum aws_service {
#define SERVICE(id, ...) SERVICE_##id,
#include "aws/services.def"
#undef SERVICE
};

struct service_row {
	const char *host;    /* template with {r} and {d} */
	const char *signing; /* signing name; "": requests are not signed */
	enum aws_protocol protocol;
	const char *content_type;
	const char *prefix; /* prefix of X-Amz-Target, or the API's version */
	const char *suffix;
};

/* Flags of operations.def. */
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
	const char *action; /* of IAM; "": nobody has to be allowed */
	enum policy_resource resource;
};

const struct operation_row *operation_row(enum aws_operation operation);
/* Returns the rate in rates.def; a rate of 0 for an operation that is not there. */
const struct rate_limit_rate *operation_rate(enum aws_operation operation);
const struct service_row *operation_service_row(enum aws_service service);

#endif
