/* The promises of jobs/node/upload/series_upload.h: all blocks are in the bucket, with their places
 * in its log, in few objects. */
#include "jobs/node/upload/series_upload.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"

#define PREFIX "runs/r/train-1/"
#define BASE   1000u

static char root[64], folder[96], path[128], bucket[96];
static struct store *store;
static struct err *failure;
static struct agent_config config;
static struct series_upload upload;
static struct series_block block;
static uint64_t block_at; /* in the file */
static uint64_t written;  /* bytes of the log */

static int begin(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/stoker-series-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof folder, "%s/node", root);
	snprintf(path, sizeof path, "%s/series", folder);
	snprintf(bucket, sizeof bucket, "%s/bucket", root);
	assert_int_equal(fs_mkdirs(folder, &failure), 0);
	assert_int_equal(fs_mkdirs(bucket, &failure), 0);
	assert_int_equal(store_open(bucket, &store, &failure), 0);
	config = (struct agent_config){ .dir = folder, .prefix = PREFIX };
	upload = (struct series_upload){ 0 };
	return 0;
}

static int finish(void **state)
{
	(void)state;
	series_block_release(&block);
	store_freep(&store);
	return fs_remove_tree(root, &failure);
}

/* Begins a file, as of that start of the command. */
static void begin_file(int64_t start)
{
	config.restart = start;
	series_block_begin(&block, 0, -1);
	block_at = written = 0;
}

static void write_block(void)
{
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_BLOCK_MAX);
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	block.to = written;
	series_block_encode(&block, &bytes);
	assert_int_equal(pwrite(fd, bytes.text, bytes.len, (off_t)block_at), bytes.len);
}

/* Adds readings, about 2,900 of which make a block, as of lines of seven bytes. */
static void write_some(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!series_block_has_room(&block, 1)) {
			write_block();
			block_at += SERIES_HEADER_BYTES + block.payload.len;
			series_block_begin(&block, written, -1);
		}
		series_block_add(&block, &(struct series_point){ 0, -1, { 1764400000000 }, 1 });
		written += 7;
	}
	write_block();
}

/* The objects that are found in the bucket. */
static struct {
	size_t objects, largest;
	uint64_t from, to, readings;
} there;

static int look_at(void *arg, const struct store_object *object, struct err **err)
{
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(SERIES_OBJECT_MAX);
	struct series_block found;
	size_t size;

	(void)arg;
	assert_int_equal(store_get(store, object->key, SERIES_OBJECT_MAX, &bytes, NULL, err), 1);
	there.objects++;
	for (size_t at = 0; at < bytes.len; at += size) {
		size = series_block_decode(bytes.text + at, bytes.len - at, &found);
		assert_true(size > 0);
		if (there.readings == 0)
			there.from = found.from;
		/* The same again is passed over, as by a reader. */
		if (found.from < there.to)
			continue;
		assert_true(there.to == 0 || found.from == there.to);
		there.to = found.to;
		there.readings += found.count;
	}
	if (bytes.len > there.largest)
		there.largest = bytes.len;
	return 0;
}

static void look(void)
{
	memset(&there, 0, sizeof there);
	assert_int_equal(store_list(store, PREFIX "node-0/series/", look_at, NULL, &failure), 0);
}

static void all_is_there(uint64_t readings)
{
	assert_true(series_upload(&upload, &config, store, BASE));
	look();
	assert_int_equal(there.readings, readings);
	if (readings > 0) {
		assert_int_equal(there.from, BASE);
		assert_int_equal(there.to, BASE + written);
	}
}

static void blocks_are_joined_as_they_age(void **state)
{
	size_t singles = 0;

	(void)state;
	all_is_there(0); /* no file yet */
	begin_file(0);
	for (uint64_t i = 1; i <= 60; i++) {
		write_some(5000);
		all_is_there(5000 * i);
		assert_true(there.objects <= (size_t)SERIES_JOINED + 4);
		singles = there.objects > singles ? there.objects : singles;
	}
	assert_true(there.largest > SERIES_OBJECT_MAX * 9 / 10);
	/* About 100 blocks: three objects of all but the newest. */
	assert_true(there.objects < 20 && singles > 25);
}

static void what_is_behind_is_joined_at_once(void **state)
{
	size_t before;

	(void)state;
	begin_file(0);
	write_some(300000);
	all_is_there(300000);
	before = there.objects;
	assert_true(before < 20);
	/* An uploader that knows nothing of the one before joins it too. */
	upload = (struct series_upload){ 0 };
	all_is_there(300000);
	assert_int_equal(there.objects, before);
}

static void each_start_has_objects_of_its_own(void **state)
{
	(void)state;
	begin_file(0);
	write_some(4000);
	all_is_there(4000);
	/* The node starts on another machine, with a file of its own. */
	unlink(path);
	upload = (struct series_upload){ 0 };
	begin_file(1);
	write_some(4000);
	assert_true(series_upload(&upload, &config, store, BASE + 4000 * 7));
	look();
	assert_int_equal(there.readings, 8000);
}

static void what_fails_is_tried_again(void **state)
{
	AUTO(auto_free) char *place = mem_format("%s/" PREFIX "node-0/series", bucket);
	AUTO(auto_free) char *above = fs_dirname(place);

	(void)state;
	begin_file(0);
	write_some(200000);
	/* No folder can be made below a file. */
	assert_int_equal(fs_mkdirs(above, &failure), 0);
	assert_int_equal(fs_write_passing(place, "x", 1, 0600, &failure), 0);
	assert_false(series_upload(&upload, &config, store, BASE));
	assert_int_equal(unlink(place), 0);
	all_is_there(200000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(blocks_are_joined_as_they_age, begin, finish),
		cmocka_unit_test_setup_teardown(what_is_behind_is_joined_at_once, begin, finish),
		cmocka_unit_test_setup_teardown(each_start_has_objects_of_its_own, begin, finish),
		cmocka_unit_test_setup_teardown(what_fails_is_tried_again, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
