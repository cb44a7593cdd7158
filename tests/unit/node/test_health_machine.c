/* What a check-up says of the machine itself: by what the kernel, the workspace and neuron-ls tell,
 * all of which the test is. */
#include "tests/unit/node/clinic.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "jobs/store/store.h"

#define GIB   ((uint64_t)1 << 30)
#define LS_MS 60000 /* neuron-ls may take so long */

/* ---- facts that the test sets ---- */

static uint64_t disk_free; /* bytes; UINT64_MAX: it cannot be asked */
static char meminfo[128];  /* path of its text */
static int64_t skew_ms;    /* of this clock, compared with the workspace's */
static bool away;          /* the workspace takes nothing */
static int64_t now_ms;
static struct tool_result ls; /* of neuron-ls */
static int64_t ls_limit;
static bool ls_starts;

int __wrap_statvfs(const char *path, struct statvfs *ret);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_health_tell_own(struct checkup *c, const char *state, struct err **err);
int __wrap_store_stat(struct store *store, const char *key, struct store_object *ret,
		      struct err **err);
struct utc __wrap_clock_utc_now(void);
struct mono __wrap_clock_mono_now(void);
int __wrap_health_tool_run(const struct command_env *env, const char *cwd, char *const *argv,
			   struct mono end, struct tool_result *ret, struct err **err);

int __wrap_statvfs(const char *path, struct statvfs *ret)
{
	(void)path;
	if (disk_free == UINT64_MAX) {
		errno = EIO;
		return -1;
	}
	/* Space that is kept for root is no room for a command. */
	*ret = (struct statvfs){ .f_frsize = 1, .f_bavail = disk_free, .f_bfree = 99 * GIB };
	return 0;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return __real_fopen(strcmp(path, "/proc/meminfo") == 0 ? meminfo : path, mode);
}

int __wrap_health_tell_own(struct checkup *c, const char *state, struct err **err)
{
	(void)c;
	assert_string_equal(state, "begun");
	return away ? err_set(err, EXIT_UNREACHABLE, "no answer") : 0;
}

int __wrap_store_stat(struct store *store, const char *key, struct store_object *ret,
		      struct err **err)
{
	(void)store, (void)err;
	assert_non_null(strstr(key, "node-0/" HEALTH_FILE));
	*ret = (struct store_object){ .modified = { 5000000 - skew_ms } };
	return 1;
}

struct utc __wrap_clock_utc_now(void)
{
	return (struct utc){ 5000000 };
}

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ now_ms };
}

int __wrap_health_tool_run(const struct command_env *env, const char *cwd, char *const *argv,
			   struct mono end, struct tool_result *ret, struct err **err)
{
	(void)env, (void)cwd;
	assert_non_null(strstr(argv[0], "/neuron-ls"));
	assert_string_equal(argv[1], "-j");
	assert_null(argv[2]);
	ls_limit = end.ms - now_ms;
	if (!ls_starts)
		return err_set(err, EXIT_REFUSED, "cannot start it");
	*ret = ls;
	ret->out = SB_INIT;
	ret->err = SB_INIT;
	sb_adds(&ret->out, ls.out.text ? ls.out.text : "");
	return 0;
}

static int reset(void **state)
{
	disk_free = 50 * GIB;
	skew_ms = 0;
	away = false;
	now_ms = 1000 * 1000;
	ls = (struct tool_result){ 0 };
	ls_starts = true;
	place_make(state);
	snprintf(meminfo, sizeof meminfo, "%s/meminfo", ((struct place *)*state)->root);
	write_file(meminfo, "MemTotal: 1 kB\nMemAvailable: 9999999 kB\n", 0600);
	return 0;
}

static void open_clinic(struct place *place, struct clinic *clinic, int64_t timeout_ms,
			int64_t left_ms)
{
	clinic_open(place, clinic, timeout_ms, left_ms);
	clinic->config.prefix = PREFIX;
	clinic->config.dir = place->root;
}

/* The row of that check; there is one. */
static const json_t *row_for(const struct clinic *clinic, const char *check)
{
	const json_t *row;
	size_t i;

	json_array_foreach (clinic->c.rows, i, row)
		if (js_is(row, "check", check))
			return row;
	fail_msg("nothing is said of '%s'", check);
	return NULL;
}

static void assert_said(const struct clinic *clinic, const char *check, const char *verdict,
			const char *words)
{
	const json_t *row = row_for(clinic, check);

	if (!js_is(row, "verdict", verdict) || !strstr(js_str(row, "words"), words))
		fail_msg("%s: %s", js_str(row, "verdict"), js_str(row, "words"));
	assert_int_equal(clinic->c.sick, strcmp(verdict, ROW_SICK) == 0);
}

/* ---- place of the workspace ---- */

static void a_disk_needs_a_gib_for_the_command(void **state)
{
	static const struct {
		uint64_t left;
		const char *verdict, *words;
	} rows[] = {
		{ GIB, ROW_OK, "1.0 GiB free" },
		{ GIB - 1, ROW_SICK, "are free in '" },
		{ 0, ROW_SICK, "only 0 B are free in '" },
		{ UINT64_MAX, ROW_UNCHECKED, "cannot read the free space of '" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;

		open_clinic(*state, &clinic, 60000, 60000);
		disk_free = rows[i].left;
		health_check_place(&clinic.c);
		assert_said(&clinic, "disk", rows[i].verdict, rows[i].words);
		assert_int_equal(json_array_size(clinic.c.rows), 3);
		clinic_close(&clinic);
	}
}

static void memory_has_to_be_available(void **state)
{
	static const struct {
		const char *text, *verdict, *words;
	} rows[] = {
		{ "MemFree: 7 kB\nMemAvailable:  262144 kB\n", ROW_OK, "256.0 MiB available" },
		{ "MemAvailable: 262143 kB\n", ROW_SICK, "of memory are left" },
		{ "MemAvailable: 0 kB\n", ROW_SICK, "only 0 B of memory are left" },
		{ "MemFree: 7 kB\n", ROW_UNCHECKED, "has no MemAvailable" },
		{ "MemAvailable: lots\n", ROW_UNCHECKED, "has no MemAvailable" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;

		write_file(meminfo, rows[i].text, 0600);
		open_clinic(*state, &clinic, 60000, 60000);
		health_check_place(&clinic.c);
		assert_said(&clinic, "memory", rows[i].verdict, rows[i].words);
		clinic_close(&clinic);
	}
}

static void a_clock_half_a_minute_off_is_warned_of(void **state)
{
	static const struct {
		int64_t skew_ms;
		const char *verdict, *words;
	} rows[] = {
		{ 0, ROW_OK, "from the workspace's" },
		{ 30000, ROW_OK, "30.0 s from the workspace's" },
		{ -30000, ROW_OK, "30.0 s from the workspace's" },
		{ 30001, ROW_WARNED, "ahead of that of the workspace" },
		{ -30001, ROW_WARNED, "behind that of the workspace" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;

		skew_ms = rows[i].skew_ms;
		open_clinic(*state, &clinic, 60000, 60000);
		health_check_place(&clinic.c);
		assert_said(&clinic, "clock", rows[i].verdict, rows[i].words);
		clinic_close(&clinic);
	}
}

static void without_a_workspace_its_time_is_not_known(void **state)
{
	struct clinic clinic;

	away = true;
	open_clinic(*state, &clinic, 60000, 60000);
	health_check_place(&clinic.c);
	assert_said(&clinic, "clock", ROW_UNCHECKED,
		    "the time of the workspace is not known: no answer");
	clinic_close(&clinic);
}

/* ---- devices of the machine ---- */

#define DEVICE(n, cores)                                                                           \
	"{\"neuron_device\":" #n ",\"nc_count\":" #cores ",\"neuron_processes\":[]}"

static void devices_are_compared_with_the_order(void **state)
{
	static const struct {
		int devices, cores; /* of the order; 0: it does not say */
		const char *shown, *verdict, *words;
		int told_devices, told_cores;
	} rows[] = {
		{ 2, 4, DEVICE(0, 2) "," DEVICE(1, 2), ROW_OK, "2 devices with 4 cores", 2, 4 },
		{ 0, 4, DEVICE(0, 2), ROW_OK, "1 devices with 2 cores", 1, 2 },
		{ 1, 0, DEVICE(0, 2), ROW_OK, "1 devices with 2 cores", 1, 2 },
		{ 2, 4, DEVICE(0, 2), ROW_SICK, "neuron-ls shows 1 of 2 Neuron devices", 1, 2 },
		{ 1, 2, DEVICE(0, 2) "," DEVICE(1, 2), ROW_WARNED,
		  "neuron-ls shows 2 Neuron devices instead of 1", 2, 4 },
		{ 1, 8, DEVICE(0, 2), ROW_WARNED, "1 devices, but 2 cores instead of 8", 1, 2 },
		{ 1, 1, DEVICE(0, 2), ROW_WARNED, "1 devices, but 2 cores instead of 1", 1, 2 },
		{ 0, 0, "", ROW_SICK, "neuron-ls shows no Neuron device", 0, 0 },
		{ 1, 2, "{\"neuron_device\":0,\"neuron_processes\":[]}", ROW_OK,
		  "1 devices with 0 cores", 1, 0 },
	};

	put_tool(*state, "neuron-ls", "");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *text = mem_format("[%s]", rows[i].shown);
		struct clinic clinic;

		open_clinic(*state, &clinic, 600000, 600000);
		MESSAGE_SET(clinic.config.order, devices, rows[i].devices);
		MESSAGE_SET(clinic.config.order, cores, rows[i].cores);
		clinic.c.cores = 77;
		ls.out.text = text;
		health_neuron_devices(&clinic.c);
		if (strcmp(rows[i].verdict, ROW_OK) == 0 && rows[i].told_cores == 0 &&
		    clinic.c.sick)
			fail_msg("row %zu", i);
		assert_said(&clinic, "devices", rows[i].verdict, rows[i].words);
		assert_int_equal(js_int(clinic.c.told, "devices", -1), rows[i].told_devices);
		assert_int_equal(js_int(clinic.c.told, "cores", -1), rows[i].told_cores);
		assert_int_equal(clinic.c.cores, rows[i].told_cores ? rows[i].told_cores : 77);
		clinic_close(&clinic);
	}
}

static void who_holds_a_device_is_named_with_what_it_runs(void **state)
{
	static char text[] =
		"[{\"neuron_device\":3,\"nc_count\":2,\"neuron_processes\":[{\"pid\":7,"
		"\"command\":\"a\\u0007b\"},{\"pid\":8}]}]";
	struct clinic clinic;

	put_tool(*state, "neuron-ls", "");
	open_clinic(*state, &clinic, 600000, 600000);
	ls.out.text = text;
	health_neuron_devices(&clinic.c);
	assert_string_equal(js_str(row_for(&clinic, "processes"), "words"),
			    "device 3 is in use by process 7 (a\\x07b), device 3 is in use by "
			    "process 8");
	clinic_close(&clinic);
}

static void a_neuron_ls_that_hangs_is_sick_if_it_had_the_time(void **state)
{
	static const struct {
		int64_t timeout_ms, left_ms, limit_ms;
		const char *verdict, *words;
	} rows[] = {
		{ 600000, 600000, LS_MS, ROW_SICK, "neuron-ls hangs, stopped after 60 s" },
		{ 600000, LS_MS, LS_MS, ROW_SICK, "neuron-ls hangs, stopped after 60 s" },
		/* A quarter of all the time. */
		{ 100000, 25000, 25000, ROW_SICK, "neuron-ls hangs, stopped after 25 s" },
		{ 100000, 24999, 24999, ROW_UNCHECKED, "no time left for neuron-ls" },
	};

	put_tool(*state, "neuron-ls", "");
	ls.hung = true;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;

		open_clinic(*state, &clinic, rows[i].timeout_ms, rows[i].left_ms);
		command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", "/nowhere/neuron");
		health_neuron_devices(&clinic.c);
		assert_int_equal(ls_limit, rows[i].limit_ms);
		assert_said(&clinic, "devices", rows[i].verdict, rows[i].words);
		clinic_close(&clinic);
	}
}

static void a_neuron_ls_that_fails_or_cannot_be_started_is_told_apart(void **state)
{
	struct clinic clinic;

	put_tool(*state, "neuron-ls", "");
	ls.status = 3;
	open_clinic(*state, &clinic, 600000, 600000);
	health_neuron_devices(&clinic.c);
	assert_said(&clinic, "devices", ROW_SICK, "neuron-ls ended with 3: ");
	clinic_close(&clinic);
	ls_starts = false;
	open_clinic(*state, &clinic, 600000, 600000);
	command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", "/nowhere/neuron");
	health_neuron_devices(&clinic.c);
	assert_said(&clinic, "devices", ROW_UNCHECKED,
		    "neuron-ls: cannot start it, and '/nowhere/neuron' is missing too");
	clinic_close(&clinic);
}

/* ---- machines that can meet ---- */

static void machines_of_some_types_cannot_meet_others(void **state)
{
	static const struct {
		const char *instance;
		bool meets;
	} rows[] = {
		{ "trn1.32xlarge", true },     { "trn1.2xlarge", false },
		{ "ml.trn1.2xlarge", false },  { "inf2.xlarge", false },
		{ "ml.inf2.48xlarge", false }, { "trn1.2xlarger", true },
		{ "ml.trn2.3xlarge", true },   { NULL, true },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;

		open_clinic(*state, &clinic, 60000, 60000);
		MESSAGE_SET_TEXT(clinic.config.order, instance, rows[i].instance);
		if (health_checkup_meets_others(&clinic.c) != rows[i].meets)
			fail_msg("%s", rows[i].instance ? rows[i].instance : "none");
		clinic_close(&clinic);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_disk_needs_a_gib_for_the_command),
		TEST(memory_has_to_be_available),
		TEST(a_clock_half_a_minute_off_is_warned_of),
		TEST(without_a_workspace_its_time_is_not_known),
		TEST(devices_are_compared_with_the_order),
		TEST(who_holds_a_device_is_named_with_what_it_runs),
		TEST(a_neuron_ls_that_hangs_is_sick_if_it_had_the_time),
		TEST(a_neuron_ls_that_fails_or_cannot_be_started_is_told_apart),
		TEST(machines_of_some_types_cannot_meet_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
