/* What the linker puts in the place of the service's functions: bucket.c and cloud.c. */
#ifndef STK_TESTS_WORLD_FAR_WRAPS_H
#define STK_TESTS_WORLD_FAR_WRAPS_H

#include "aws/s3/s3.h"
#include "jobs/engine/engine.h"

int __wrap_aws_open(struct aws **ret, struct err **err);
void __wrap_aws_freep(struct aws **aws);
void __wrap_aws_set_place(struct aws *aws, const char *bucket, const char *prefix);
void __wrap_aws_turn(struct aws *aws, int64_t wait_ms);
int __wrap_s3_head(struct aws *aws, const struct s3_place *place, struct s3_outcome *ret,
		   struct err **err);
int __wrap_s3_get(struct aws *aws, const struct s3_place *place, uint64_t offset, uint64_t len,
		  size_t max, struct sb *bytes, struct s3_outcome *ret, struct err **err);
int __wrap_s3_put(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
		  struct s3_outcome *ret, struct err **err);
int __wrap_s3_upload(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
		     struct s3_outcome *ret, struct err **err);
int __wrap_s3_download(struct aws *aws, const struct s3_place *place, int fd,
		       struct s3_outcome *ret, struct err **err);
int __wrap_s3_copy(struct aws *aws, const struct s3_source *from, const struct s3_place *to,
		   uint64_t whole_max, struct s3_outcome *ret, struct err **err);
int __wrap_s3_delete(struct aws *aws, const struct s3_place *place, struct err **err);
int __wrap_s3_abort_leftovers(struct aws *aws, const struct s3_place *place, int64_t idle_ms,
			      struct err **err);
int __wrap_s3_list(struct aws *aws, const struct s3_list *what, s3_object_fn object_fn,
		   s3_prefix_fn prefix_fn, void *arg, struct err **err);
struct s3_listing *__wrap_s3_list_start(struct aws *aws, const struct s3_list *what, s3_page_fn fn,
					void *arg);
void __wrap_s3_list_next(struct s3_listing *listing);
void __wrap_s3_listing_freep(struct s3_listing **listing);
void __wrap_s3_page_freep(struct s3_page **page);
struct s3_operation *__wrap_s3_upload_start(struct aws *aws, const struct s3_place *place,
					    const struct s3_body *body, s3_done_fn done, void *arg,
					    struct err **err);
struct s3_operation *__wrap_s3_download_start(struct aws *aws, const struct s3_place *place,
					      const struct s3_object *known, int fd,
					      s3_done_fn done, void *arg, struct err **err);
void __wrap_s3_cancelp(struct s3_operation **op);
const struct engine_ops *__real_engine_find(const char *name);
const struct engine_ops *__wrap_engine_find(const char *name);

#endif
