/* Types of what an IAM action is allowed on: a row each in resources.def. */
#ifndef STK_AWS_POLICY_RESOURCE_H
#define STK_AWS_POLICY_RESOURCE_H

enum policy_resource {
#define RESOURCE(id, ...) POLICY_##id,
#include "aws/policy/resources.def"
#undef RESOURCE
	POLICY_RESOURCE_COUNT
};

#endif
