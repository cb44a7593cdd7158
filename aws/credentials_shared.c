/* Keys in the shared credentials file, ~/.aws/credentials, read anew each time: whoever
 * changes keys there need not start stoker again. */
#include "aws/credentials_inside.h"
#include "aws/settings.h"

int provide_shared(const struct ask *ask, struct credentials *ret, struct err **err)
{
	return credentials_take_static(ask, aws_shared_path(), PROFILE_CREDENTIALS, ret, err);
}
