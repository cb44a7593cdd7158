/* Keys in the shared config file, ~/.aws/config, read anew each time. */
#include "aws/credentials_inside.h"
#include "aws/settings.h"

int provide_config(const struct ask *ask, struct credentials *ret, struct err **err)
{
	return credentials_take_static(ask, aws_config_path(), PROFILE_CONFIG, ret, err);
}
