/* S3 in memory: see bucket.h. */
#include "tests/world/bucket_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aws/aws.h"
#include "aws/s3/s3.h"
#include "jobs/base/mem.h"
#include "jobs/base/process/cancel.h"
#include "tests/world/call.h"
#include "tests/world/clocks_seen.h"
#include "tests/world/clocks_time.h"
#include "tests/world/far_wraps.h"
#include "tests/world/kernel.h"

#define PAGE_KEYS 1000
#define SLICE_NS  (200 * WORLD_MS) /* between two looks whether to stop waiting */
/* All attempts of one request, without an answer: twice as long as the real client waits. */
#define GIVE_UP_NS (2 * AWS_CALL_MS * WORLD_MS)

struct object {
	char *bucket, *key;
	char *bytes;
	size_t len;
	uint64_t version; /* of the ETag */
	int64_t modified_ms;
	char nonce[S3_NONCE];
};

static struct object **objects; /* by bucket, then key in byte order */
static size_t object_count;
static uint64_t versions;
static int64_t outage_until_ns;
static const struct machine *outage_of;

int64_t service_clock_ms(void)
{
	return WORLD_EPOCH_MS + now_ns / WORLD_MS;
}

void bucket_outage(int64_t until_ns, const struct machine *only)
{
	outage_until_ns = until_ns;
	outage_of = only;
}

/* ---- objects ---- */

static int compare(const struct object *object, const char *bucket, const char *key)
{
	int order = strcmp(object->bucket, bucket);

	return order ? order : strcmp(object->key, key);
}

/* The place of the first object that is not before this one. */
static size_t place_of(const char *bucket, const char *key)
{
	size_t low = 0, high = object_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(objects[middle], bucket, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct object *find(const char *bucket, const char *key)
{
	size_t at = place_of(bucket, key);

	return at < object_count && compare(objects[at], bucket, key) == 0 ? objects[at] : NULL;
}

static struct object *write_object(const char *bucket, const char *key, const void *bytes,
				   size_t len)
{
	size_t at = place_of(bucket, key);
	struct object *object;

	if (at == object_count || compare(objects[at], bucket, key) != 0) {
		objects = mem_grow(objects, object_count + 1, sizeof(struct object *));
		memmove(objects + at + 1, objects + at,
			(object_count - at) * sizeof(struct object *));
		objects[at] = mem_zero(1, sizeof *object);
		objects[at]->bucket = mem_copy(bucket);
		objects[at]->key = mem_copy(key);
		object_count++;
	}
	object = objects[at];
	free(object->bytes);
	object->bytes = mem_alloc(len + 1);
	memcpy(object->bytes, bytes, len);
	object->bytes[len] = '\0';
	object->len = len;
	object->version = ++versions;
	object->modified_ms = service_clock_ms();
	world_stir();
	return object;
}

static void remove_object(const char *bucket, const char *key)
{
	size_t at = place_of(bucket, key);
	struct object *object = find(bucket, key);

	if (!object)
		return;
	free(object->bytes);
	free(object->bucket);
	free(object->key);
	free(object);
	object_count--;
	memmove(objects + at, objects + at + 1, (object_count - at) * sizeof(struct object *));
}

void bucket_put(const char *bucket, const char *key, const void *bytes, size_t len)
{
	write_object(bucket, key, bytes, len);
}

const char *bucket_get(const char *bucket, const char *key, size_t *ret_len)
{
	const struct object *object = find(bucket, key);

	if (object && ret_len)
		*ret_len = object->len;
	return object ? object->bytes : NULL;
}

void bucket_remove(const char *bucket, const char *key)
{
	remove_object(bucket, key);
}

/* ---- a request ---- */

static bool is_cut_off(void)
{
	return now_ns < outage_until_ns && (!outage_of || outage_of == self->machine);
}

/* The process waits, and may be told to wait no longer. */
static bool wait_for_answer(int64_t ns)
{
	while (ns > 0) {
		int64_t slice = ns < SLICE_NS ? ns : SLICE_NS;

		if (cancel_is_due())
			return false;
		world_spend(slice);
		ns -= slice;
	}
	return !cancel_is_due();
}

static enum call_answer wait_for_service(int id, const char *about, uint64_t bytes)
{
	struct call call = call_enter((enum call_id)id, about, -1);
	int64_t patience = GIVE_UP_NS;

	if (is_cut_off())
		time_call_hangs(self);
	while (is_cut_off() && patience > 0) {
		if (!wait_for_answer(WORLD_S))
			return ANSWER_NONE;
		patience -= WORLD_S;
	}
	if (is_cut_off())
		return ANSWER_NONE;
	if (!wait_for_answer(10 * WORLD_MS + chance_below(190 * WORLD_MS) + (int64_t)bytes * 10))
		return chance_one_in(2) ? ANSWER_LOST : ANSWER_NONE;
	if (!call.error)
		return ANSWER_YES;
	if (call.error == EACCES)
		return ANSWER_REFUSED;
	return call.done ? ANSWER_LOST : ANSWER_NONE;
}

enum call_answer service_request(int id, const char *about, uint64_t bytes)
{
	enum call_answer answer = wait_for_service(id, about, bytes);

	time_call_returns(self);
	if (answer != ANSWER_YES)
		seen_refusal(self, (enum call_id)id, about, answer == ANSWER_LOST);
	return answer;
}

/* Sets the error of a request that did not work. */
int bucket_no_answer(enum call_answer answer, const struct s3_place *place, struct err **err)
{
	if (answer == ANSWER_REFUSED)
		return err_set(err, EXIT_REFUSED, "S3 refused 's3://%s/%s': AccessDenied (403)",
			       place->bucket, place->key);
	return err_set(err, EXIT_UNREACHABLE, "no answer of S3 about 's3://%s/%s'", place->bucket,
		       place->key);
}

static void describe(const struct object *object, struct s3_outcome *ret)
{
	ret->object.size = object->len;
	ret->object.modified.ms = object->modified_ms / 1000 * 1000; /* S3 says whole seconds */
	snprintf(ret->object.etag, sizeof ret->object.etag, "\"%032llx\"",
		 (unsigned long long)object->version);
}

/* ---- what an operation does ---- */

static bool condition_holds(const struct s3_body *body, const struct object *there)
{
	struct s3_outcome now = { 0 };

	if (body->condition == S3_IF_ABSENT)
		return !there;
	if (body->condition == S3_ALWAYS)
		return true;
	if (there)
		describe(there, &now);
	return there && strcmp(now.object.etag, body->etag) == 0;
}

/* Reads what a body is made of. NULL with errno. */
static char *body_bytes(const struct s3_body *body)
{
	char *bytes = mem_alloc(body->len + 1);
	uint64_t at = 0;

	if (body->fd < 0) {
		memcpy(bytes, body->bytes, body->len);
		return bytes;
	}
	while (at < body->len) {
		ssize_t got =
			pread(body->fd, bytes + at, body->len - at, (off_t)(body->offset + at));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got < 0 ? errno : ENODATA;
			free(bytes);
			return NULL;
		}
		at += (uint64_t)got;
	}
	return bytes;
}

/* Puts an object; S3_FAILED leaves `err`. */
enum s3_result bucket_put_object(int id, const struct s3_place *place, const struct s3_body *body,
				 struct s3_outcome *ret, struct err **err)
{
	AUTO(auto_free) char *bytes = body_bytes(body);
	enum call_answer answer;
	struct object *there;

	if (!bytes) {
		err_system(err, EXIT_REFUSED, errno, "cannot read the file for 's3://%s/%s'",
			   place->bucket, place->key);
		return S3_FAILED;
	}
	answer = service_request(id, place->key, body->len);
	if (answer == ANSWER_NONE || answer == ANSWER_REFUSED) {
		bucket_no_answer(answer, place, err);
		return S3_FAILED;
	}
	there = find(place->bucket, place->key);
	if (condition_holds(body, there)) {
		there = write_object(place->bucket, place->key, bytes, body->len);
		if (ret) {
			describe(there, ret);
			ret->bytes = body->len;
		}
		if (answer == ANSWER_YES)
			return S3_DONE;
	} else if (answer == ANSWER_YES) {
		return S3_TAKEN;
	}
	bucket_no_answer(answer, place, err);
	return S3_FAILED;
}

/* ---- waiting for one operation ---- */

int __wrap_s3_head(struct aws *aws, const struct s3_place *place, struct s3_outcome *ret,
		   struct err **err)
{
	enum call_answer answer = service_request(CALL_s3_head, place->key, 0);
	const struct object *object = find(place->bucket, place->key);

	(void)aws;
	if (answer != ANSWER_YES)
		return bucket_no_answer(answer, place, err);
	if (object && ret)
		describe(object, ret);
	return object != NULL;
}

int __wrap_s3_get(struct aws *aws, const struct s3_place *place, uint64_t offset, uint64_t len,
		  size_t max, struct sb *bytes, struct s3_outcome *ret, struct err **err)
{
	const struct object *object = find(place->bucket, place->key);
	enum call_answer answer =
		service_request(CALL_s3_get, place->key, object ? object->len : 0);
	uint64_t left;

	(void)aws;
	if (answer != ANSWER_YES)
		return bucket_no_answer(answer, place, err);
	object = find(place->bucket, place->key);
	if (!object)
		return 0;
	left = offset < object->len ? object->len - offset : 0;
	left = len > 0 && len < left ? len : left;
	if (left > max)
		return err_set(err, EXIT_REFUSED, "'s3://%s/%s' is larger than %zu bytes",
			       place->bucket, place->key, max);
	sb_add(bytes, object->bytes + (offset < object->len ? offset : 0), left);
	/* S3 gives no metadata for a range beyond the end. */
	if (ret && (offset < object->len || object->len == 0 || offset == 0))
		describe(object, ret);
	return 1;
}

int __wrap_s3_put(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
		  struct s3_outcome *ret, struct err **err)
{
	enum s3_result result = bucket_put_object(CALL_s3_put, place, body, ret, err);

	(void)aws;
	return result == S3_FAILED ? -1 : result == S3_DONE;
}

int __wrap_s3_upload(struct aws *aws, const struct s3_place *place, const struct s3_body *body,
		     struct s3_outcome *ret, struct err **err)
{
	enum s3_result result = bucket_put_object(CALL_s3_upload, place, body, ret, err);

	(void)aws;
	return result == S3_FAILED ? -1 : result == S3_DONE;
}

/* Nothing of it comes here; the service reads the source when it writes the target. */
int __wrap_s3_copy(struct aws *aws, const struct s3_source *from, const struct s3_place *to,
		   uint64_t whole_max, struct s3_outcome *ret, struct err **err)
{
	enum call_answer answer = service_request(CALL_s3_copy, to->key, from->size);
	const struct object *source = find(from->place.bucket, from->place.key);
	struct s3_outcome there = { 0 };

	(void)aws;
	(void)whole_max;
	if (answer == ANSWER_NONE || answer == ANSWER_REFUSED)
		return bucket_no_answer(answer, to, err);
	if (source)
		describe(source, &there);
	if (!source || strcmp(there.object.etag, from->etag) != 0)
		return answer == ANSWER_YES ? 0 : bucket_no_answer(answer, to, err);
	source = write_object(to->bucket, to->key, source->bytes, source->len);
	if (answer != ANSWER_YES)
		return bucket_no_answer(answer, to, err);
	if (ret)
		describe(source, ret);
	return 1;
}

enum s3_result bucket_download(int id, const struct s3_place *place, const struct s3_object *known,
			       int fd, struct s3_outcome *ret, struct err **err)
{
	const struct object *object = find(place->bucket, place->key);
	enum call_answer answer = service_request(id, place->key, object ? object->len : 0);
	size_t at = 0;

	if (answer != ANSWER_YES) {
		bucket_no_answer(answer, place, err);
		return S3_FAILED;
	}
	object = find(place->bucket, place->key);
	if (!object)
		return S3_ABSENT;
	describe(object, ret);
	if (known && strcmp(known->etag, ret->object.etag) != 0)
		return S3_TAKEN;
	while (at < object->len) {
		ssize_t put = pwrite(fd, object->bytes + at, object->len - at, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			err_system(err, EXIT_REFUSED, errno, "cannot write what 's3://%s/%s' holds",
				   place->bucket, place->key);
			return S3_FAILED;
		}
		at += (size_t)put;
	}
	ret->bytes = object->len;
	return S3_DONE;
}

int __wrap_s3_download(struct aws *aws, const struct s3_place *place, int fd,
		       struct s3_outcome *ret, struct err **err)
{
	struct s3_outcome own = { 0 };
	enum s3_result result =
		bucket_download(CALL_s3_download, place, NULL, fd, ret ? ret : &own, err);

	(void)aws;
	return result == S3_FAILED ? -1 : result == S3_DONE;
}

int __wrap_s3_delete(struct aws *aws, const struct s3_place *place, struct err **err)
{
	enum call_answer answer = service_request(CALL_s3_delete, place->key, 0);

	(void)aws;
	if (answer == ANSWER_YES || answer == ANSWER_LOST)
		remove_object(place->bucket, place->key);
	return answer == ANSWER_YES ? 0 : bucket_no_answer(answer, place, err);
}

int __wrap_s3_abort_leftovers(struct aws *aws, const struct s3_place *place, int64_t idle_ms,
			      struct err **err)
{
	enum call_answer answer = service_request(CALL_s3_abort_leftovers, place->key, 0);

	(void)aws;
	(void)idle_ms; /* an upload is whole or nothing here */
	return answer == ANSWER_YES ? 0 : bucket_no_answer(answer, place, err);
}

/* ---- listings ---- */

/* The first page behind `after`; with a delimiter, prefixes stand for the keys below them. */
struct s3_page *bucket_page(const struct s3_list *what, const char *after)
{
	struct s3_page *page = mem_zero(1, sizeof *page);
	size_t from = strlen(what->prefix), count = 0;
	size_t at = place_of(what->bucket, after && *after ? after : what->prefix);

	page->last = true;
	for (; at < object_count; at++) {
		const struct object *object = objects[at];
		const char *cut;

		if (strcmp(object->bucket, what->bucket) != 0 ||
		    strncmp(object->key, what->prefix, from) != 0)
			break;
		if (after && strcmp(object->key, after) <= 0)
			continue;
		cut = what->delimiter ? strstr(object->key + from, what->delimiter) : NULL;
		if (cut) {
			size_t len = (size_t)(cut - object->key) + strlen(what->delimiter);
			char *prefix = mem_copy_n(object->key, len);

			if (page->prefix_count > 0 &&
			    strcmp(page->prefixes[page->prefix_count - 1], prefix) == 0) {
				free(prefix);
				continue;
			}
			page->prefixes =
				mem_grow(page->prefixes, page->prefix_count + 1, sizeof(char *));
			page->prefixes[page->prefix_count++] = prefix;
		} else {
			struct s3_outcome now = { 0 };

			if (!what->delimiter && count == PAGE_KEYS) {
				page->last = false;
				break;
			}
			describe(object, &now);
			now.object.key = mem_copy(object->key);
			now.object.unsafe_name = s3_key_unsafe(object->key, strlen(object->key));
			page->objects = mem_grow(page->objects, count + 1, sizeof *page->objects);
			page->objects[count++] = now.object;
			page->object_count = count;
		}
	}
	return page;
}

void __wrap_s3_page_freep(struct s3_page **page)
{
	struct s3_page *p = *page;

	if (!p)
		return;
	for (size_t i = 0; i < p->object_count; i++)
		free((char *)(uintptr_t)p->objects[i].key);
	for (size_t i = 0; i < p->prefix_count; i++)
		free(p->prefixes[i]);
	free(p->objects);
	free(p->prefixes);
	free(p);
	*page = NULL;
}

static int each_of_page(const struct s3_page *page, s3_object_fn object_fn, s3_prefix_fn prefix_fn,
			void *arg, struct err **err)
{
	int done = 0;

	for (size_t i = 0; i < page->object_count && done == 0 && object_fn; i++)
		done = object_fn(arg, &page->objects[i], err);
	for (size_t i = 0; i < page->prefix_count && done == 0 && prefix_fn; i++)
		done = prefix_fn(arg, page->prefixes[i], err);
	return done;
}

int __wrap_s3_list(struct aws *aws, const struct s3_list *what, s3_object_fn object_fn,
		   s3_prefix_fn prefix_fn, void *arg, struct err **err)
{
	const struct s3_place place = { what->bucket, what->prefix };
	AUTO(auto_free) char *after = what->start_after ? mem_copy(what->start_after) : NULL;
	bool last = false;
	int done = 0;

	(void)aws;
	while (!last && done == 0) {
		enum call_answer answer = service_request(CALL_s3_list, what->prefix, 0);
		struct s3_page *page;

		if (answer != ANSWER_YES)
			return bucket_no_answer(answer, &place, err);
		page = bucket_page(what, after);
		last = page->last;
		done = each_of_page(page, object_fn, prefix_fn, arg, err);
		if (page->object_count > 0) {
			free(after);
			after = mem_copy(page->objects[page->object_count - 1].key);
		}
		__wrap_s3_page_freep(&page);
	}
	return done < 0 ? -1 : 0;
}
