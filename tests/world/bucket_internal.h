/* Shared by bucket.c (what an operation does) and bucket_client.c (many of them at once). */
#ifndef STK_TESTS_WORLD_BUCKET_INTERNAL_H
#define STK_TESTS_WORLD_BUCKET_INTERNAL_H

#include "aws/s3/s3.h"
#include "tests/world/bucket.h"
#include "tests/world/call.h"
#include "tests/world/far_wraps.h"

/* Sets the error of a request that did not work; returns -1. */
int bucket_no_answer(enum call_answer answer, const struct s3_place *place, struct err **err);
/* Each waits for the service; S3_FAILED leaves `err`. `id` is of calls.def. */
enum s3_result bucket_put_object(int id, const struct s3_place *place, const struct s3_body *body,
				 struct s3_outcome *ret, struct err **err);
enum s3_result bucket_download(int id, const struct s3_place *place, const struct s3_object *known,
			       int fd, struct s3_outcome *ret, struct err **err);
/* The page of a listing behind `after` (NULL: the first); s3_page_freep() frees it. */
struct s3_page *bucket_page(const struct s3_list *what, const char *after);

#endif
