/* Headers of S3's replies, and the times in them: see s3_request.h. */
#include <string.h>
#include <time.h>

#include "aws/s3/s3_request.h"

void s3_header_text(const struct http_reply *reply, const char *name, char *ret, size_t size)
{
	AUTO(sb_release) struct sb value = SB_INIT_MAX(4096);

	ret[0] = '\0';
	if (reply && http_header(reply, name, &value) && value.len < size &&
	    strlen(value.text) == value.len)
		memcpy(ret, value.text, value.len + 1);
}

static bool digits(const char *text, size_t count, int *ret)
{
	*ret = 0;
	for (size_t i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*ret = *ret * 10 + (text[i] - '0');
	}
	return true;
}

/* Parses "04:05:06". */
static bool clock_time(const char *text, struct tm *tm)
{
	return digits(text, 2, &tm->tm_hour) && text[2] == ':' &&
	       digits(text + 3, 2, &tm->tm_min) && text[5] == ':' &&
	       digits(text + 6, 2, &tm->tm_sec);
}

static bool iso_date(const char *text, struct tm *tm)
{
	return strlen(text) >= 20 && digits(text, 4, &tm->tm_year) && text[4] == '-' &&
	       digits(text + 5, 2, &tm->tm_mon) && text[7] == '-' &&
	       digits(text + 8, 2, &tm->tm_mday) && text[10] == 'T' && clock_time(text + 11, tm);
}

static bool http_date(const char *text, struct tm *tm)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	if (strlen(text) != 29 || text[3] != ',' || !digits(text + 5, 2, &tm->tm_mday) ||
	    !digits(text + 12, 4, &tm->tm_year) || !clock_time(text + 17, tm))
		return false;
	for (int month = 0; month < 12; month++)
		if (strncmp(months + 3 * (size_t)month, text + 8, 3) == 0)
			tm->tm_mon = month + 1;
	return tm->tm_mon > 0;
}

struct utc s3_time(const char *text)
{
	struct tm tm = { 0 };
	int ms = 0;

	if (!iso_date(text, &tm)) {
		tm = (struct tm){ 0 };
		if (!http_date(text, &tm))
			return (struct utc){ 0 };
	} else if (text[19] == '.' && strlen(text) >= 24 && !digits(text + 20, 3, &ms)) {
		ms = 0;
	}
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return (struct utc){ (int64_t)timegm(&tm) * 1000 + ms };
}
