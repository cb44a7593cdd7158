/* Headers of S3's replies, and the times in them: see s3_request.h. */
#include <string.h>

#include "aws/date.h"
#include "aws/s3/s3_request.h"

void s3_header_text(const struct http_reply *reply, const char *name, char *ret, size_t size)
{
	AUTO(sb_release) struct sb value = SB_INIT_MAX(4096);

	ret[0] = '\0';
	if (reply && http_header(reply, name, &value) && value.len < size &&
	    strlen(value.text) == value.len)
		memcpy(ret, value.text, value.len + 1);
}

struct utc s3_time(const char *text)
{
	struct utc at = { 0 };

	return aws_date_iso(text, &at) || aws_date_http(text, &at) ? at : (struct utc){ 0 };
}
