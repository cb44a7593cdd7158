/* Opens a client that signs with the keys of the chain: apart from the pipeline, because providers
 * of the chain perform requests themselves. See aws.h. */
#include "aws/request.h"

int aws_open(struct aws **ret, struct err **err)
{
	if (aws_open_keyless(ret, err) < 0)
		return -1;
	(*ret)->credentials = &credentials_default;
	return 0;
}
