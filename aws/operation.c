/* The tables of services and operations: see operation.h. */
#include "aws/operation.h"

static const struct service_row services[] = {
#define SERVICE(id, host, signing, protocol, content_type, prefix, suffix)                         \
	[SERVICE_##id] = { host, signing, PROTOCOL_##protocol, content_type, prefix, suffix },
#include "aws/services.def"
#undef SERVICE
};

#define UNSIGNED  OPERATION_UNSIGNED
#define ONCE      OPERATION_ONCE
#define ERROR_200 OPERATION_ERROR_200
#define CHECKSUM  OPERATION_CHECKSUM
#define SECRET    OPERATION_SECRET

static const struct operation_row operations[] = {
#define OPERATION(id, service, name, method, path, flags, action, resource)                        \
	[AWS_##id] = { SERVICE_##service, name, method, path, flags, action, POLICY_##resource },
#include "aws/operations.def"
#undef OPERATION
};

static const struct rate_limit_rate rates[AWS_OPERATION_COUNT] = {
#define RATE(id, a_second, burst) [AWS_##id] = { a_second, burst },
#include "aws/http/rates.def"
#undef RATE
};

const struct rate_limit_rate *operation_rate(enum aws_operation operation)
{
	return &rates[operation];
}

const struct operation_row *operation_row(enum aws_operation operation)
{
	return &operations[operation];
}

const struct service_row *operation_service_row(enum aws_service service)
{
	return &services[service];
}
