/* Helper's side of outputs.h: uploads the outputs to the workspace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/text/text.h"
#include "jobs/node/upload/outputs.h"
#include "jobs/store/store.h"
#include "jobs/store/sync.h"

#define KEY_MAX   1024 /* bytes of a key in a bucket */
#define NAMES_MAX 16   /* entries left out that are reported with the reason */
#define TELL_MS   1000
#define PAUSE_MS  5000
/* A service that is away that long may be away for good. */
#define LAST_MS ((int64_t)10 * 60 * 1000)

struct bringing {
	const struct agent_config *config;
	int news_fd;
	struct store *from, *to;
	char *root;   /* folder of `from`, without links */
	size_t above; /* bytes of a key before the name */
	struct mono told;
	uint64_t moved; /* bytes moved until then */
	/* counts of this pass */
	int64_t files, renamed, left;
	uint64_t bytes;
	json_t *names;
	char **odd; /* keys that no object can have */
	size_t odd_count;
};

static void forget_pass(struct bringing *b)
{
	b->files = b->renamed = b->left = 0;
	b->bytes = 0;
	json_decref(b->names);
	b->names = json_array();
	auto_strv(&b->odd);
	b->odd = NULL;
	b->odd_count = 0;
}

static void bringing_release(struct bringing *b)
{
	store_freep(&b->from);
	store_freep(&b->to);
	json_decref(b->names);
	auto_strv(&b->odd);
	free(b->root);
}

/* ---- messages to the agent ---- */

static json_t *counts(const struct bringing *b, const char *kind)
{
	json_t *line = news_of(kind);

	js_put(line, "files", json_integer(b->files));
	js_put(line, "bytes", json_integer((json_int_t)b->bytes));
	if (b->renamed > 0)
		js_put(line, "renamed", json_integer(b->renamed));
	if (b->left > 0) {
		js_put(line, "left", json_integer(b->left));
		js_put(line, "names", json_incref(b->names));
	}
	return line;
}

static void say_moving(struct bringing *b)
{
	b->told = clock_mono_now();
	news_say(b->news_fd, counts(b, "moving"));
}

static bool still_moving(void *arg, const struct sync_sum *sum)
{
	struct bringing *b = arg;
	uint64_t moved = store_traffic();

	(void)sum;
	if (moved != b->moved && clock_mono_now().ms - b->told.ms >= TELL_MS) {
		b->moved = moved;
		say_moving(b);
	}
	return true;
}

static void leave(struct bringing *b, const char *key, const char *why)
{
	json_t *row;

	b->left++;
	if (json_array_size(b->names) == NAMES_MAX)
		return;
	row = json_object();
	js_put(row, "name", js_text(key, strlen(key)));
	js_put_str(row, "why", why);
	json_array_append_new(b->names, row);
}

/* ---- one pass ---- */

/* Records an entry that cannot be uploaded. A link to something that is uploaded anyway loses
 * nothing, and is not recorded. */
static void pass_over(struct bringing *b, const char *key, const char *why)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", b->root, key);
	AUTO(auto_free) char *real = NULL;
	size_t len = strlen(b->root);
	struct stat st;

	if (lstat(path, &st) < 0 || S_ISREG(st.st_mode)) {
		leave(b, key, why);
		return;
	}
	if (!S_ISLNK(st.st_mode)) {
		leave(b, key, "is not a file");
		return;
	}
	real = realpath(path, NULL);
	if (!real)
		leave(b, key, "is a dangling link");
	else if (strncmp(real, b->root, len) != 0 || (real[len] != '/' && real[len] != '\0'))
		leave(b, key, "is a link out of the folder, which is not followed");
}

/* True if the key has bytes that no object can have in its name. */
static bool is_odd(const char *key)
{
	for (const char *at = key; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return true;
	return !text_is_utf8(key, strlen(key));
}

static void on_fate(void *arg, enum sync_fate fate, const char *key, uint64_t size, const char *why)
{
	struct bringing *b = arg;
	AUTO(auto_free) char *path = NULL;
	struct stat st;

	switch (fate) {
	case SYNC_SAME:
	case SYNC_MOVED:
		b->files++;
		b->bytes += size;
		break;
	case SYNC_REFUSED:
		path = mem_format("%s/%s", b->root, key);
		if (!is_odd(key) || lstat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
			pass_over(b, key, why);
			break;
		}
		b->odd = mem_grow(b->odd, b->odd_count + 2, sizeof *b->odd);
		b->odd[b->odd_count++] = mem_copy(key);
		b->odd[b->odd_count] = NULL;
		break;
	case SYNC_FAILED:
		leave(b, key, why);
		break;
	case SYNC_FATES:
		break;
	}
}

/* Leaves out a key that the bucket would refuse, as that would end the whole pass. */
static enum sync_stage may_move(void *arg, const char *key)
{
	struct bringing *b = arg;

	if (b->above + strlen(key) <= KEY_MAX)
		return SYNC_AT_ONCE;
	leave(b, key, "has a name too long for an object");
	return SYNC_NOT;
}

/* Returns the same name, with bytes that no object can have as %XX. The caller frees it. */
static char *spell(const char *key)
{
	struct sb text = SB_INIT;
	size_t len = strlen(key);

	for (size_t i = 0; i < len;) {
		uint32_t code = 0;
		size_t width = text_utf8(key + i, len - i, &code);

		if (width > 0 && code >= 0x20 && code != 0x7f && code != '%') {
			sb_add(&text, key + i, width);
			i += width;
		} else {
			sb_addf(&text, "%%%02X", (unsigned char)key[i]);
			i++;
		}
	}
	return text.text;
}

static int bring_odd(struct bringing *b, const char *key, struct err **err)
{
	AUTO(auto_free) char *name = spell(key);
	AUTO(auto_free) char *path = mem_format("%s/%s", b->root, key);
	struct stat st;

	if (b->above + strlen(name) > KEY_MAX || !store_key_fits(name, false)) {
		leave(b, key, "has an invalid name for an object");
		return 0;
	}
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
		leave(b, key, "was changed meanwhile");
		return 0;
	}
	if (store_upload(b->to, path, name, err) < 0)
		return -1;
	b->files++;
	b->renamed++;
	b->bytes += (uint64_t)st.st_size;
	return 0;
}

static int pass(struct bringing *b, struct err **err)
{
	const struct sync_options options = {
		.stage = may_move, .on_object = on_fate, .progress = still_moving, .arg = b
	};
	struct sync_sum sum;

	forget_pass(b);
	if (sync_run(b->from, b->to, &options, &sum, err) < 0)
		return -1;
	for (size_t i = 0; i < b->odd_count; i++) {
		if (bring_odd(b, b->odd[i], err) < 0)
			return -1;
		(void)still_moving(b, &sum);
	}
	return 0;
}

/* ---- life ---- */

static int open_both(struct bringing *b, struct err **err)
{
	AUTO(auto_free) char *key = agent_config_outputs_key(b->config);
	AUTO(auto_free) char *url = mem_format("%s/%s", b->config->workspace, key);
	const char *name = strstr(url, "://");

	name = name ? strchr(name + 3, '/') : NULL; /* path behind the bucket */
	b->above = name ? strlen(name + 1) + 1 : 0;
	b->root = realpath(b->config->output, NULL);
	if (!b->root)
		return fs_error(err, errno, "cannot look into '%s'", b->config->output);
	if (store_open(b->root, &b->from, err) < 0)
		return -1;
	return store_open(url, &b->to, err);
}

/* A file that cannot be read is not the workspace's failure. */
static json_t *last_word(struct bringing *b, const struct err *why)
{
	AUTO(auto_free) char *text = why ? err_format(why) : NULL;
	json_t *line;

	if (why && why->os_errno) {
		leave(b, "", text);
		return counts(b, "done");
	}
	line = counts(b, "done");
	if (why) {
		js_put_str(line, "why", why->message);
		js_put_str(line, "hint", why->hint);
		js_put_str(line, "class",
			   why->code == EXIT_UNREACHABLE ? "transient-infra" : "quota-permission");
	}
	return line;
}

int outputs_work(const struct agent_config *config, int news_fd)
{
	AUTO(bringing_release) struct bringing b = { .config = config, .news_fd = news_fd };
	const struct mono end = { clock_mono_now().ms + LAST_MS };
	AUTO(err_freep) struct err *why = NULL;

	b.names = json_array();
	if (open_both(&b, &why) == 0)
		while (pass(&b, &why) < 0 && why->code == EXIT_UNREACHABLE && !why->os_errno &&
		       clock_mono_now().ms < end.ms) {
			err_freep(&why);
			say_moving(&b);
			(void)cancel_pause(PAUSE_MS);
		}
	news_say(news_fd, last_word(&b, why));
	return 0;
}
