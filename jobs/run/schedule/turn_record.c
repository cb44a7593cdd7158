/* Records of turns: see turn_record.h. */
#include "jobs/run/schedule/turn_record.h"

#include <string.h>
#include <unistd.h>

#include "jobs/base/hash.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/text.h"
#include "jobs/store/store_json.h"

#define FOLDER     "turns/"
#define HAND_KEY   FOLDER "hand.json"
#define RECORD_MAX ((size_t)1 << 20)
#define TRIES      8 /* at a record that others change too */

static char *key_of(struct utc at)
{
	char utc[UTC_TEXT];

	return mem_format(FOLDER "%s.json", clock_utc_format(at, utc));
}

/* ---- members of a record ---- */

void turn_run_id(const char *name, struct utc due, char ret[JOURNAL_RUN_MAX])
{
	char utc[UTC_TEXT], hex[SHA256_HEX], word[27] = "";
	bool fits = strlen(name) < sizeof word;

	for (size_t i = 0; i < sizeof word - 1 && name[i]; i++) {
		char c = name[i];

		word[i] = c >= 'A' && c <= 'Z'                               ? (char)(c - 'A' + 'a')
			  : (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c
									     : '-';
		fits = fits && word[i] == name[i];
	}
	/* Ids begin with a letter or digit. */
	if (word[0] == '-')
		word[0] = 'x';
	hash_sha256_hex(name, strlen(name), hex);
	clock_utc_format(due, utc);
	if (fits)
		snprintf(ret, JOURNAL_RUN_MAX, "%s-", word);
	else
		snprintf(ret, JOURNAL_RUN_MAX, "%.17s-%.8s-", word, hex);
	snprintf(ret + strlen(ret), JOURNAL_RUN_MAX - strlen(ret), "%.4s%.2s%.2st%.2s%.2s", utc,
		 utc + 5, utc + 8, utc + 11, utc + 14);
}

json_t *turn_make(const char *name, struct utc at, const char *by, const char *outcome,
		  const char *run, const char *reason)
{
	char utc[UTC_TEXT], host[256] = "";
	json_t *record = json_object();
	struct proc_id self;

	js_put(record, "v", json_integer(1));
	js_put_str(record, "name", name);
	js_put_str(record, "at", clock_utc_format(at, utc));
	js_put_str(record, "by", by);
	js_put_str(record, "outcome", outcome);
	js_put_str(record, "run", run);
	js_put_str(record, "reason", reason);
	(void)!gethostname(host, sizeof host - 1);
	js_put_str(record, "host", host);
	if (proc_identify(getpid(), &self) == 0) {
		js_put(record, "pid", json_integer(self.pid));
		js_put(record, "started", json_integer((json_int_t)self.start_ticks));
		js_put_str(record, "boot", self.boot_id);
	}
	return record;
}

bool turn_is_left(const json_t *record)
{
	const char *boot = js_str(record, "boot");
	char host[256] = "";
	struct proc_id self, id = { .pid = (pid_t)js_int(record, "pid", 0),
				    .start_ticks = (uint64_t)js_int(record, "started", 0) };

	(void)!gethostname(host, sizeof host - 1);
	if (!js_is(record, "host", host) || !boot || strlen(boot) >= sizeof id.boot_id ||
	    id.pid <= 0 || proc_identify(getpid(), &self) < 0)
		return false;
	memcpy(id.boot_id, boot, strlen(boot) + 1);
	/* Two machines may have one name: only a process of this boot can be looked at. */
	return strcmp(id.boot_id, self.boot_id) == 0 && !proc_alive(&id);
}

struct utc turn_at(const json_t *record)
{
	struct utc at = { 0 };

	(void)!clock_utc_parse(js_str(record, "at"), &at);
	return at;
}

/* ---- reading and writing ---- */

/* A record of another moment than its name says would stand in for turns that it is not of. */
static bool is_record(const json_t *record, const char *key)
{
	AUTO(auto_free) char *own = NULL;
	struct utc at;

	if (js_int(record, "v", 0) != 1 || !js_str(record, "outcome") || !js_str(record, "at") ||
	    !clock_utc_parse(js_str(record, "at"), &at))
		return false;
	own = key_of(at);
	return strcmp(key, HAND_KEY) == 0 || strcmp(key, own) == 0;
}

static int read_key(struct store *place, const char *key, json_t **ret, char tag[STORE_TAG],
		    struct err **err)
{
	json_auto_t *record = NULL;
	int found = store_json_get(place, key, RECORD_MAX, &record, tag, err);

	if (found < 0)
		return err_wrap(err, "cannot read the record of a turn");
	if (found == 0)
		return 0;
	if (!is_record(record, key)) {
		err_set(err, EXIT_REFUSED,
			"'%s/%s', the record of a turn, is damaged, or of a later version",
			store_url(place), key);
		err_damage(err);
		return err_hint(err, "restore it, or delete it to have the turn decided again");
	}
	*ret = TAKE(record);
	return 1;
}

int turn_claim(struct store *place, const json_t *record, struct err **err)
{
	AUTO(auto_free) char *key = key_of(turn_at(record));
	int written = store_json_replace(place, key, NULL, record, err);

	return written < 0 ? err_wrap(err, "cannot record the turn") : written;
}

int turn_read(struct store *place, struct utc at, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = key_of(at);

	return read_key(place, key, ret, NULL, err);
}

struct turn_newest {
	const char *end; /* keys before it count; NULL: all */
	char key[sizeof FOLDER + UTC_TEXT + 8];
};

static int see_key(void *arg, const struct store_object *object, struct err **err)
{
	struct turn_newest *newest = arg;
	char utc[UTC_TEXT];
	struct utc at;

	(void)err;
	if (newest->end && strcmp(object->key, newest->end) >= 0)
		return 1;
	if (strlen(object->key) != strlen(FOLDER ".json") + UTC_TEXT - 1)
		return 0;
	snprintf(utc, sizeof utc, "%s", object->key + strlen(FOLDER));
	if (clock_utc_parse(utc, &at))
		snprintf(newest->key, sizeof newest->key, "%s", object->key);
	return 0;
}

int turn_before(struct store *place, const struct utc *before, json_t **ret, struct err **err)
{
	AUTO(auto_free) char *end = before ? key_of(*before) : NULL;
	struct turn_newest newest = { .end = end };
	char month[sizeof FOLDER + 7] = "";

	/* The month of `before` is listed first: an hourly schedule leaves thousands of records a
	 * year. */
	if (end)
		snprintf(month, sizeof month, "%s", end);
	if ((end && store_list(place, month, see_key, &newest, err) < 0) ||
	    (!*newest.key && store_list(place, FOLDER, see_key, &newest, err) < 0))
		return err_wrap(err, "cannot read the records of earlier turns");
	return *newest.key ? read_key(place, newest.key, ret, NULL, err) : 0;
}

static void change(json_t *record, const json_t *members)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)members, name, value)
		if (json_is_null(value))
			json_object_del(record, name);
		else
			json_object_set(record, name, value);
}

int turn_update(struct store *place, struct utc at, const char *from, const json_t *members,
		struct err **err)
{
	AUTO(auto_free) char *key = key_of(at);

	for (int i = 0; i < TRIES; i++) {
		json_auto_t *record = NULL;
		char tag[STORE_TAG];
		int done = read_key(place, key, &record, tag, err);

		if (done <= 0)
			return done;
		if (from && !js_is(record, "outcome", from))
			return 0;
		change(record, members);
		done = store_json_replace(place, key, tag, record, err);
		if (done != 0)
			return done < 0 ? err_wrap(err, "cannot record the turn") : 1;
	}
	err_set(err, EXIT_UNREACHABLE, "the record '%s/%s' changes all the time", store_url(place),
		key);
	return err_hint(err, "see which other processes write it");
}

/* ---- turns by hand ---- */

int turn_hand_read(struct store *place, json_t **ret, char ret_tag[STORE_TAG], struct err **err)
{
	return read_key(place, HAND_KEY, ret, ret_tag, err);
}

int turn_hand_write(struct store *place, const char *tag, const json_t *claim, struct err **err)
{
	int written = store_json_replace(place, HAND_KEY, tag, claim, err);

	return written < 0 ? err_wrap(err, "cannot claim the turn") : written;
}

/* ---- order ---- */

int turn_check_order(struct store *place, struct utc at, struct err **err)
{
	json_auto_t *record = NULL;
	struct utc last, listed;
	char text[UTC_TEXT], wanted[UTC_TEXT];
	int found = turn_before(place, NULL, &record, err);

	/* Turns that were skipped, or wait, have asked for nothing. */
	while (found > 0 && !js_is(record, "outcome", "run") &&
	       !js_is(record, "outcome", "nothing_new")) {
		last = turn_at(record);
		json_decref(TAKE(record));
		found = turn_before(place, &last, &record, err);
	}
	if (found <= 0)
		return found;
	last = turn_at(record);
	if (js_str(record, "listed") && clock_utc_parse(js_str(record, "listed"), &listed) &&
	    listed.ms > last.ms)
		last = listed;
	if (at.ms >= last.ms)
		return 0;
	err_set(err, EXIT_REFUSED, "--at %s lies before the last turn, which was at %s",
		clock_utc_format(at, wanted), clock_utc_format(last, text));
	return err_hint(err, "name a later time: what was settled then was given already");
}
