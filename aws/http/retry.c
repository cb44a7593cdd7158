/* Retry decision and delay: see retry.h. */
#include "aws/http/retry.h"

#include <stddef.h>
#include <stdlib.h>

#define QUOTA_FULL         500
#define COST               5
#define COST_AFTER_TIMEOUT 10
#define DELAY_MAX_MS       20000
#define ASKED_MORE_MS      5000
#define ATTEMPTS_MAX       100

int retry_pay(struct retry_quota *quota, bool after_timeout)
{
	int cost = after_timeout ? COST_AFTER_TIMEOUT : COST;

	if (quota->left < cost)
		return 0;
	quota->left -= cost;
	return cost;
}

void retry_earn(struct retry_quota *quota, int paid)
{
	quota->left += paid ? paid : 1;
	if (quota->left > QUOTA_FULL)
		quota->left = QUOTA_FULL;
}

int64_t retry_backoff_ms(int attempt, uint32_t chance, int64_t asked_ms)
{
	int64_t limit = DELAY_MAX_MS, delay;

	if (attempt >= 1 && attempt <= 5) /* 2^5 s exceed the limit */
		limit = 1000LL << (attempt - 1);
	if (limit > DELAY_MAX_MS)
		limit = DELAY_MAX_MS;
	delay = (int64_t)((double)limit * ((double)chance / UINT32_MAX));
	if (asked_ms > delay)
		delay = asked_ms < delay + ASKED_MORE_MS ? asked_ms : delay + ASKED_MORE_MS;
	return delay;
}

int retry_attempts(const char *set, bool is_s3)
{
	char *end = NULL;
	long count = set ? strtol(set, &end, 10) : 0;

	if (!set || end == set || *end || count < 1)
		return is_s3 ? 5 : 3;
	return count < ATTEMPTS_MAX ? (int)count : ATTEMPTS_MAX;
}
