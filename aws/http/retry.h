/*
 * Whether to retry and when, as the SDKs' standard mode does it: pure numbers, no clock, no
 * randomness of its own.
 *
 * Source: botocore 1.43 retries/standard.py and quota.py.
 */
#ifndef STK_AWS_HTTP_RETRY_H
#define STK_AWS_HTTP_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Budget for retries, shared by all calls of a client: when a service is down for good, each call
 * fails after one attempt instead of adding to its load. */
struct retry_quota {
	int left;
};
#define RETRY_QUOTA_INIT ((struct retry_quota){ 500 })

/* Pays for one retry: 5, or 10 after a timeout. Returns the amount paid, or 0 if the quota is too
 * small. */
int retry_pay(struct retry_quota *quota, bool after_timeout);
/* Records that a call has succeeded; `paid` was its last payment (0 if none). */
void retry_earn(struct retry_quota *quota, int paid);

/* Returns the ms to wait after attempt number `attempt`, from 1: up to 1 s, 2 s, 4 s … 20 s, of
 * which `chance` (0 to UINT32_MAX) takes a part. `asked_ms` is the delay the service asked for
 * (x-amz-retry-after), which is honoured within 5 s above that; -1: none. */
int64_t retry_backoff_ms(int attempt, uint32_t chance, int64_t asked_ms);

/* Returns the number of attempts of a call: AWS_MAX_ATTEMPTS or the profile's max_attempts
 * (`set`, NULL: neither), else 3, and 5 for S3, as in botocore's default. */
int retry_attempts(const char *set, bool is_s3);

#endif
