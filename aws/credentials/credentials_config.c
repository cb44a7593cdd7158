/* Keys in the shared config file, ~/.aws/config, read again each time. */
#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/settings.h"

int credentials_provide_config(const struct provider_request *request, struct credentials *ret,
			       struct err **err)
{
	return credentials_from_file(request, aws_config_path(), PROFILE_CONFIG, ret, err);
}
