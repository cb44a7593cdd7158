/*
 * Records of turns and pins of schedules, which lie beside the promoted models, where others may
 * write. The input is one JSON text: a record as it came, and a pin as it came and with the sum
 * that its writer would give it, since no fuzzer hits a digest.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_store.h"

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/run/schedule/schedule_record.h"
#include "jobs/run/schedule/turn_record.h"

#define AT INT64_C(1925434800000) /* 2031-01-06T03:00:00Z, as in the seeds */

static void check_error(const struct err *err)
{
	MUST(err && err->code == EXIT_REFUSED && err->damage && err->hint);
	for (const char *at = err->message; *at; at++)
		MUST((unsigned char)*at >= ' ' && *at != 0x7f);
}

/* ---- records of turns ---- */

static void check_record(const json_t *record)
{
	MUST(js_int(record, "v", 0) == 1 && js_str(record, "outcome"));
	(void)!turn_is_left(record);
	(void)turn_at(record);
}

static void change_record(struct store *place)
{
	json_auto_t *members = json_object(), *record = NULL;
	AUTO(err_freep) struct err *err = NULL;

	js_put_str(members, "run", "run-2");
	js_put(members, "reason", json_null());
	MUST(turn_update(place, (struct utc){ AT }, "no such outcome\n", members, &err) == 0);
	MUST(turn_update(place, (struct utc){ AT }, NULL, members, &err) == 1);
	MUST(turn_read(place, (struct utc){ AT }, &record, &err) == 1);
	check_record(record);
	MUST(js_is(record, "run", "run-2") && !json_object_get(record, "reason"));
}

static void read_record(const char *text, size_t len)
{
	AUTO(store_freep) struct store *place = &memory_store_new()->base;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(err_freep) struct err *other = NULL;
	json_auto_t *record = NULL, *newest = NULL;
	char utc[UTC_TEXT];
	AUTO(auto_free)
	char *key = mem_format("turns/%s.json", clock_utc_format((struct utc){ AT }, utc));
	int found;

	MUST(store_put(place, key, text, len, &err) == 0);
	found = turn_read(place, (struct utc){ AT }, &record, &err);
	MUST(turn_before(place, NULL, &newest, &other) == found && found != 0);
	if (found < 0) {
		check_error(err);
		check_error(other);
		return;
	}
	check_record(record);
	MUST(json_equal(record, newest) && turn_at(record).ms == AT);
	/* The record's own moment is no sooner than the last turn, unless the record says that it
	 * listed later. */
	if (turn_check_order(place, turn_at(record), &other) < 0)
		MUST(other->code == EXIT_REFUSED && other->hint && js_str(record, "listed"));
	change_record(place);
}

/* ---- pins ---- */

static void read_pin(const char *folder, const char *text, size_t len)
{
	AUTO(auto_free) char *path = mem_format("%s/schedule/pin.json", folder);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *pin = NULL;
	FILE *file = fopen(path, "w");
	int found;

	MUST(file && fwrite(text, 1, len, file) == len && fclose(file) == 0);
	found = schedule_pin_read(folder, &pin, &err);
	MUST(found != 0);
	if (found < 0) {
		check_error(err);
		return;
	}
	MUST(js_str(pin, "name") && js_str(pin, "cron") && js_str(pin, "timezone") &&
	     js_str(pin, "since") && js_str(json_object_get(pin, "plan"), "workspace"));
	(void)js_int(pin, "jitter_ms", 0);
}

/* All inputs share one folder: `run` removes it. */
static const char *place_of_pins(void)
{
	static char folder[4096];
	const char *place = getenv("TMPDIR");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *below = NULL;

	if (folder[0])
		return folder;
	snprintf(folder, sizeof folder, "%s/pins", place ? place : "/tmp/fuzz-turn");
	below = fs_join(folder, "schedule");
	MUST(fs_mkdirs(below, &err) == 0);
	return folder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *copy = span_copy((struct span){ (const char *)data, size });
	AUTO(auto_free) char *sealed = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *body = NULL;
	const char *folder = place_of_pins();
	char sum[SHA256_HEX];

	read_record(copy, size);
	read_pin(folder, copy, size);
	if (js_parse(copy, size, "it", &body, &err) < 0 || !json_is_object(body))
		return 0;
	json_object_del(body, "sum");
	js_digest(body, sum);
	js_put_str(body, "sum", sum);
	sealed = js_line(body);
	read_pin(folder, sealed, strlen(sealed));
	return 0;
}
