/*
 * Whether to try again and when, as the SDKs' standard mode does it: pure numbers, no
 * clock, no chance of its own.
 *
 * Source: botocore 1.43 retries/standard.py and quota.py.
 */
#ifndef STK_AWS_RETRY_H
#define STK_AWS_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* What all calls of a client may spend on retries together: when a service is down for
 * good, each call fails after one attempt instead of adding to its load. */
struct retry_quota {
	int left;
};
#define RETRY_QUOTA_INIT ((struct retry_quota){ 500 })

/* Pay for one retry: 5, or 10 after a timeout. What was paid, or 0: there is not enough. */
int retry_pay(struct retry_quota *quota, bool after_timeout);
/* A call has succeeded, and `paid` was its last payment (0: there was none). */
void retry_earn(struct retry_quota *quota, int paid);

/* How many ms to wait after the attempt of this number, from 1: up to 1 s, 2 s, 4 s … 20 s,
 * of which `chance` (0 to UINT32_MAX) takes a part. `asked_ms`: what the service asked for
 * (x-amz-retry-after), which is honoured within 5 s above that; -1: nothing. */
int64_t retry_backoff_ms(int attempt, uint32_t chance, int64_t asked_ms);

/* How many attempts a call has: AWS_MAX_ATTEMPTS or the profile's max_attempts (`set`, NULL:
 * neither), else 3, and 5 for S3, where botocore's default is as many. */
int retry_attempts(const char *set, bool is_s3);

#endif
