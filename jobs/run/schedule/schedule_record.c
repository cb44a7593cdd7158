/* Entries and pins of schedules: see schedule_record.h. */
#include "jobs/run/schedule/schedule_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/store/store_json.h"

#define RECORD_MAX ((size_t)16 << 20)
#define FOLDER     "schedules/"
#define PIN_KEY    "pin.json"
#define VERSION    1

/* ---- entries ---- */

/* Opens the store of the state, also of one on a local disk. */
static int open_state(struct journal *journal, struct store **ret_own, struct store **ret,
		      struct err **err)
{
	*ret = journal_store(journal);
	if (*ret)
		return 0;
	if (store_open(journal_dir(journal), ret_own, err) < 0)
		return -1;
	*ret = *ret_own;
	return 0;
}

static bool is_entry(const json_t *entry)
{
	return js_int(entry, "v", 0) == VERSION && js_str(entry, "name") && js_str(entry, "url") &&
	       js_str(entry, "to") && json_is_object(json_object_get(entry, "alarm"));
}

static int read_entry(struct store *store, const char *key, json_t **ret, struct err **err)
{
	json_auto_t *entry = NULL;
	int found = store_json_get(store, key, RECORD_MAX, &entry, NULL, err);

	if (found <= 0)
		return found;
	if (!is_entry(entry)) {
		err_set(err, EXIT_REFUSED,
			"the schedule '%s' below '%s' is damaged, or of a later "
			"version",
			key, store_url(store));
		err_damage(err);
		return err_hint(err, "'stoker schedule add SPEC --to …' writes it again");
	}
	*ret = TAKE(entry);
	return 1;
}

int schedule_entry_read(struct journal *journal, const char *name, json_t **ret, struct err **err)
{
	AUTO(store_freep) struct store *own = NULL;
	AUTO(auto_free) char *key = mem_format(FOLDER "%s.json", name);
	struct store *store;

	if (!store_key_fits(key, false) || strchr(name, '/'))
		return 0;
	return open_state(journal, &own, &store, err) < 0 ? -1 : read_entry(store, key, ret, err);
}

int schedule_entry_write(struct journal *journal, const json_t *entry, struct err **err)
{
	AUTO(store_freep) struct store *own = NULL;
	AUTO(auto_free) char *key = mem_format(FOLDER "%s.json", js_str(entry, "name"));
	struct store *store;

	return open_state(journal, &own, &store, err) < 0 ? -1
							  : store_json_put(store, key, entry, err);
}

int schedule_entry_remove(struct journal *journal, const char *name, struct err **err)
{
	AUTO(store_freep) struct store *own = NULL;
	AUTO(auto_free) char *key = mem_format(FOLDER "%s.json", name);
	struct store *store;

	return open_state(journal, &own, &store, err) < 0 ? -1 : store_delete(store, key, err);
}

static int add_key(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	json_array_append_new(arg, json_string(object->key));
	return 0;
}

int schedule_entries(struct journal *journal, json_t *ret, struct err **err)
{
	AUTO(store_freep) struct store *own = NULL;
	json_auto_t *keys = json_array();
	struct store *store;
	json_t *key;
	size_t i;

	if (open_state(journal, &own, &store, err) < 0 ||
	    store_list(store, FOLDER, add_key, keys, err) < 0)
		return -1;
	json_array_foreach (keys, i, key) {
		json_t *entry = NULL;
		int found = read_entry(store, json_string_value(key), &entry, err);

		if (found < 0)
			return -1;
		if (found > 0)
			json_array_append_new(ret, entry);
	}
	return 0;
}

/* ---- pins ---- */

/* A new line of cron, or another zone, has missed nothing. */
static const char *since_of(const json_t *pin, const json_t *former)
{
	static const char *const same[] = { "cron", "timezone" };

	for (size_t i = 0; i < STK_LENGTH(same); i++)
		if (!former || !js_is(former, same[i], js_str(pin, same[i])))
			return js_str(pin, "added");
	return js_str(former, "since");
}

json_t *schedule_pin_make(const struct spec *spec, const struct plan *plan, const json_t *former)
{
	json_t *pin = json_object();
	int64_t within = spec_ms(spec, SPEC_SCHEDULE_START_WITHIN);
	char now[UTC_TEXT];

	js_put(pin, "v", json_integer(VERSION));
	js_put_str(pin, "name", spec_str(spec, SPEC_NAME));
	js_put_str(pin, "cron", spec_str(spec, SPEC_SCHEDULE_CRON));
	js_put_str(pin, "timezone", spec_str(spec, SPEC_SCHEDULE_TIMEZONE));
	js_put_str(pin, "overlap", spec_str(spec, SPEC_SCHEDULE_OVERLAP));
	js_put_str(pin, "catch_up", spec_str(spec, SPEC_SCHEDULE_CATCH_UP));
	js_put(pin, "jitter_ms", json_integer(spec_ms(spec, SPEC_SCHEDULE_JITTER)));
	if (within != SPEC_WORD)
		js_put(pin, "start_within_ms", json_integer(within));
	js_put(pin, "plan", json_incref(plan->json));
	js_put_str(pin, "digest", plan->digest);
	js_put_str(pin, "added", clock_utc_format(clock_utc_now(), now));
	js_put_str(pin, "since", since_of(pin, former));
	return pin;
}

static void remove_folder(char **folder)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (*folder)
		(void)!fs_remove_tree(*folder, &ignored);
	auto_free(folder);
}

/* Makes a folder in $TMPDIR. */
static char *make_folder(struct err **err)
{
	const char *place = getenv("TMPDIR");
	char *folder = mem_format("%s/stoker-XXXXXX", place && *place ? place : "/tmp");

	if (mkdtemp(folder))
		return folder;
	fs_error(err, errno, "cannot make the folder '%s'", folder);
	free(folder);
	return NULL;
}

/* Copies an object from one store to another, unless it is there. Returns 1 if it is there now, 0
 * if neither store has it. */
static int copy_object(struct store *from, struct store *to, const char *key, struct err **err)
{
	AUTO(remove_folder) char *folder = NULL;
	AUTO(auto_free) char *path = NULL;
	struct store_object there;
	int done = store_stat(to, key, &there, err);

	if (done != 0)
		return done;
	folder = make_folder(err);
	if (!folder)
		return -1;
	path = fs_join(folder, "bundle");
	done = store_download(from, key, path, err);
	if (done <= 0)
		return done;
	return store_upload(to, path, key, err) < 0 ? -1 : 1;
}

/* Opens the folder of the pin, below promote.url. */
static int open_place(const char *url, struct store **ret, struct err **err)
{
	AUTO(auto_free) char *place = mem_format("%s/schedule", url);

	return store_open(place, ret, err);
}

/* Copies the source's bundle, and its patch if it was dirty, between the workspace and the place of
 * the pin. */
static int copy_source(const char *url, const json_t *pin, bool back, struct err **err)
{
	AUTO(store_freep) struct store *place = NULL, *workspace = NULL;
	AUTO(auto_free) char *patch = NULL;
	const json_t *plan = json_object_get(pin, "plan"),
		     *source = json_object_get(plan, "source");
	const char *bundle = js_str(source, "bundle");
	struct store *from, *to;
	int copied;

	if (!bundle)
		return 0;
	if (open_place(url, &place, err) < 0 ||
	    store_open(js_str(plan, "workspace"), &workspace, err) < 0)
		return -1;
	from = back ? place : workspace;
	to = back ? workspace : place;
	patch = mem_format("sources/%s.patch", js_str(source, "digest"));
	if (js_bool(source, "dirty", false) && copy_object(from, to, patch, err) < 0)
		return -1;
	copied = copy_object(from, to, bundle, err);
	if (copied != 0)
		return copied < 0 ? -1 : 0;
	err_set(err, EXIT_REFUSED, "'%s' is no longer in '%s'", bundle, store_url(from));
	return err_hint(err, "'stoker schedule add SPEC --to …' pins the source again");
}

/* Removes what former pins have left; NULL: what all have. */
static int remove_others(struct store *place, const json_t *pin, struct err **err)
{
	const json_t *source = json_object_get(json_object_get(pin, "plan"), "source");
	const char *digest = js_str(source, "digest"), *key;
	json_auto_t *keys = json_array();
	json_t *value;
	size_t i;

	if (store_list(place, "", add_key, keys, err) < 0)
		return -1;
	json_array_foreach (keys, i, value) {
		key = json_string_value(value);
		if (pin && (strcmp(key, PIN_KEY) == 0 || (digest && strstr(key, digest))))
			continue;
		if (store_delete(place, key, err) < 0)
			return -1;
	}
	return 0;
}

/* The SHA-256 of the pin without its sum. */
static void sum_of(const json_t *pin, char ret[SHA256_HEX])
{
	json_auto_t *body = json_copy((json_t *)(uintptr_t)pin);

	json_object_del(body, "sum");
	js_digest(body, ret);
}

int schedule_pin_write(const char *url, const json_t *pin, struct err **err)
{
	AUTO(store_freep) struct store *place = NULL;
	json_auto_t *sealed = json_copy((json_t *)(uintptr_t)pin);
	char sum[SHA256_HEX];

	sum_of(sealed, sum);
	js_put_str(sealed, "sum", sum);
	/* The pin is what a turn believes in: it comes last. */
	return copy_source(url, pin, false, err) < 0 || open_place(url, &place, err) < 0 ||
			       store_json_put(place, PIN_KEY, sealed, err) < 0
		       ? -1
		       : remove_others(place, pin, err);
}

/* True for a pin as it was written: what a person changed by hand was not checked, and cannot be
 * relied on. */
static bool is_pin(const json_t *pin)
{
	char sum[SHA256_HEX];

	if (!json_is_object(pin))
		return false;
	sum_of(pin, sum);
	return js_is(pin, "sum", sum) && js_int(pin, "v", 0) == VERSION && js_str(pin, "name") &&
	       js_str(pin, "timezone") && js_str(pin, "cron") && js_str(pin, "overlap") &&
	       js_str(pin, "catch_up") && js_str(pin, "digest") && js_str(pin, "since") &&
	       js_str(json_object_get(pin, "plan"), "workspace");
}

int schedule_pin_read(const char *url, json_t **ret, struct err **err)
{
	AUTO(store_freep) struct store *place = NULL;
	json_auto_t *pin = NULL;
	int found;

	if (open_place(url, &place, err) < 0)
		return -1;
	found = store_json_get(place, PIN_KEY, RECORD_MAX, &pin, NULL, err);
	if (found <= 0)
		return found;
	if (!is_pin(pin)) {
		err_set(err, EXIT_REFUSED,
			"the pinned schedule in '%s' is damaged, or of a later version", url);
		err_damage(err);
		return err_hint(err, "'stoker schedule add SPEC --to …' pins it again");
	}
	*ret = TAKE(pin);
	return 1;
}

int schedule_pin_restore(const char *url, const json_t *pin, struct err **err)
{
	return copy_source(url, pin, true, err);
}

int schedule_pin_remove(const char *url, struct err **err)
{
	AUTO(store_freep) struct store *place = NULL;

	/* The pin goes first: a turn that finds it finds its source too. */
	return open_place(url, &place, err) < 0 || store_delete(place, PIN_KEY, err) < 0
		       ? -1
		       : remove_others(place, NULL, err);
}
