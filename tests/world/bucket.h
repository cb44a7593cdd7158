/*
 * S3 of the simulated world: buckets in memory behind the product's own store box. The functions of
 * aws/s3/s3.h that the store box calls are led here (rows of calls.def); what they promise is
 * there, and is kept as strictly as the real service keeps it: conditions by ETag, a listing in
 * byte order that is true at the moment it is asked for, in pages of 1,000, a write that is seen
 * whole or not at all, a reply that may be lost although the write was done.
 *
 * A request takes 10 to 200 ms and 10 ns a byte. While it waits, the process is asked several times
 * a second whether to stop waiting (cancel_is_due(), the product's own), as aws.h says.
 */
#ifndef STK_TESTS_WORLD_BUCKET_H
#define STK_TESTS_WORLD_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Times of the service: UTC in ms; its clock is right. */
#define WORLD_EPOCH_MS INT64_C(1750000000000)
int64_t service_clock_ms(void);

/* Until that time (ns) nobody gets an answer, or only this machine does not; 0: ends. */
struct machine;
void bucket_outage(int64_t until_ns, const struct machine *only);

/* The world's own hand. */
void bucket_put(const char *bucket, const char *key, const void *bytes, size_t len);
/* NULL: absent; borrowed until the next write. */
const char *bucket_get(const char *bucket, const char *key, size_t *ret_len);
void bucket_remove(const char *bucket, const char *key);

/* A request of the running process begins: it waits for the service. Returns true if the answer
 * comes; else nobody heard it, and `*ret_done` says whether the request arrived all the same. Used
 * by the far engine as well. `id` is of calls.def. */
struct err;
enum call_answer { ANSWER_YES, ANSWER_LOST, ANSWER_NONE, ANSWER_REFUSED };
enum call_answer service_request(int id, const char *about, uint64_t bytes);

#endif
