/* Keys in the shared credentials file, ~/.aws/credentials, read again each time, so that changed
 * keys need no restart of stoker. */
#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/settings.h"

int credentials_provide_shared(const struct provider_request *request, struct credentials *ret,
			       struct err **err)
{
	return credentials_from_file(request, aws_shared_path(), PROFILE_CREDENTIALS, ret, err);
}
