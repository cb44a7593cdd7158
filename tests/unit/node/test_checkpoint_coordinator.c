/* Several real agents, each with a checkpoint folder of its own, and a root that is all they
 * have in common: what is marked, when, and what never is. */
#include "tests/unit/node/agent_run.h"

#include "jobs/checkpoint/shards.h"
#include "jobs/store/store.h"

#define NODES_MAX 4
/* Longer than a busy machine takes for anything: nothing here waits until it is over. */
#define GRACE_MS 300000
/* A node that is silent for 30 of them is taken for dead; one that lives has 15 s, then. */
#define HEARTBEAT_MS 500
/* A beat so long that nothing settles, which takes 6, before a node hears of the other's end. */
#define UNSETTLED_MS 4000

/* `save STEP [WORD]` writes this node's shard; `until_there PATH` waits for a file. */
#define SHARD                                                                                      \
	"k=$STOKER_NODE_RANK; far=%s/far; c=$STOKER_CHECKPOINT_DIR; set -e; "                      \
	"save() { mkdir -p $c/step-$1; echo ${2:-part}$k > $c/step-$1/shard-$k.bin; }; "           \
	"until_there() { until [ -e $1 ]; do sleep 0.02; done; }; "                                \
	"marked() { until_there $far/marks/step-$1" MARK_SUFFIX "; }; "                            \
	"sent() { until_there $far/shards/step-$1/node-$k.json; }; "

static char *script_of(const struct place *place, const char *what)
{
	AUTO(auto_free) char *head = mem_format(SHARD, place->root);

	return mem_format("%s%s", head, what);
}

static json_t *order_apart(const struct place *place, int nodes, const char *what)
{
	AUTO(auto_free) char *script = script_of(place, what);
	AUTO(auto_free) char *root = mem_format("dir:%s/far", place->root);
	json_t *order = order_for(place, script);

	js_put(order, "nodes", json_integer(nodes));
	js_put(order, "look_ms", json_integer(200));
	js_put(order, "grace_ms", json_integer(GRACE_MS));
	js_put(order, "heartbeat_ms", json_integer(HEARTBEAT_MS));
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "files", "root", root, "sync",
			 "agent", "keep", "all", "signal", "USR1", "grace_ms", GRACE_MS));
	return order;
}

struct gang {
	pid_t pids[NODES_MAX];
	int nodes, ends[NODES_MAX];
};

static void gang_start(struct gang *gang, const struct place *place, json_t *order)
{
	AUTO(auto_free) char *prefix = mem_copy(js_str(order, "prefix"));

	gang->nodes = (int)js_int(order, "nodes", 1);
	order_write(place, order);
	for (int i = 0; i < gang->nodes; i++)
		gang->pids[i] = start(place, prefix, i, plain_env, NULL);
}

static void gang_end(struct gang *gang)
{
	for (int i = 0; i < gang->nodes; i++)
		gang->ends[i] = end_of(gang->pids[i]);
}

static void gang_run(struct gang *gang, const struct place *place, json_t *order)
{
	gang_start(gang, place, order);
	gang_end(gang);
	for (int i = 0; i < gang->nodes; i++)
		assert_int_equal(gang->ends[i], 0);
}

static bool is_marked(const struct place *place, const char *name)
{
	AUTO(auto_free) char *path = mem_format("%s/far/marks/%s" MARK_SUFFIX, place->root, name);

	return fs_exists(path);
}

/* The mark of a checkpoint, which holds; a new reference to its files. */
static json_t *files_of(const struct place *place, const char *name)
{
	AUTO(auto_free) char *url = mem_format("dir:%s/far", place->root);
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *why = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt_root root = { .path = "", .attempt = 1, .nonce = NONCE };

	must(store_open(url, &store, &err), &err);
	root.store = store;
	must(checkpoint_mark_read(&root, name, &mark, &err), &err);
	if (!mark.files) {
		json_auto_t *body = report(place);
		AUTO(auto_free) char *text = js_line(json_object_get(body, "checkpoint"));

		fail_msg("'%s' is not marked: %s", name, text);
	}
	must(checkpoint_mark_holds(&mark, &why, &err), &err);
	assert_null(why);
	assert_int_equal(mark.attempt, 1);
	return json_incref(mark.files);
}

/* Returns the checkpoint that a run would resume from, NULL if none. Yours to free. */
static char *chosen(const struct place *place)
{
	AUTO(auto_free) char *url = mem_format("dir:%s/far", place->root);
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt_root root = { .path = "", .attempt = 1, .nonce = NONCE };

	must(store_open(url, &store, &err), &err);
	root.store = store;
	must(checkpoint_choose(&root, 1, "r1", INT64_MAX, &choice, &err), &err);
	return choice.found ? mem_copy(choice.mark.name) : NULL;
}

static char *why_of(const struct place *place, const char *name)
{
	json_auto_t *body = report(place);
	json_t *row;
	size_t i;

	json_array_foreach (js_path(body, "checkpoint.partial"), i, row)
		if (strcmp(js_str(row, "name"), name) == 0)
			return mem_copy(js_str(row, "why"));
	return NULL;
}

/* ---- */

static void each_node_brings_its_shard_and_each_gets_all_of_them(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *from = mem_format("dir:%s/far/step-20", place->root);
	struct gang gang;
	json_t *order;

	gang_run(&gang, place, order_apart(place, 4, "save 10; marked 10; save 20"));
	for (int step = 10; step <= 20; step += 10) {
		AUTO(auto_free) char *name = mem_format("step-%d", step);
		json_auto_t *files = files_of(place, name);

		assert_int_equal(json_array_size(files), 4);
	}
	order = order_apart(place, 4,
			    "for i in 0 1 2 3; do echo part$i | "
			    "cmp - $STOKER_RESUME_FROM/shard-$i.bin; done");
	js_put(order, "attempt", json_integer(2));
	js_put_str(order, "resume_from", from);
	js_put(order, "resume_step", json_integer(20));
	gang_run(&gang, place, order);
}

static void what_has_no_room_here_is_told_before_it_is_fetched(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *path = place_path(place, "far/marks/step-10" MARK_SUFFIX);
	AUTO(auto_free) char *from = mem_format("dir:%s/far/step-10", place->root);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *mark = NULL, *body = NULL;
	AUTO(auto_free) char *text = NULL;
	struct gang gang;
	json_t *order;

	gang_run(&gang, place, order_apart(place, 2, "save 10"));
	must(js_load(path, 65536, &mark, &err), &err);
	js_put(json_array_get(json_object_get(mark, "files"), 0), "size",
	       json_integer((json_int_t)1 << 60));
	text = js_line(mark);
	write_file(path, text, 0600);
	order = order_apart(place, 2, "exit 0");
	js_put(order, "attempt", json_integer(2));
	js_put_str(order, "resume_from", from);
	gang_start(&gang, place, order);
	gang_end(&gang);
	body = report(place);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	assert_string_equal(js_str(json_object_get(body, "error"), "class"), "user-config");
	assert_has(js_str(json_object_get(body, "error"), "message"), "free");
}

static void what_node_0_alone_saves_is_marked_while_all_go_on_and_at_the_end(void **state)
{
	struct place *place = *state;
	json_auto_t *body = NULL;
	struct gang gang;

	gang_run(&gang, place,
		 order_apart(place, 2,
			     "[ $k = 0 ] || { marked 10; exit; }; save 10; marked 10; save 20"));
	assert_true(is_marked(place, "step-10"));
	assert_true(is_marked(place, "step-20"));
	body = report(place);
	assert_int_equal(js_int(json_object_get(body, "checkpoint"), "step", 0), 20);
}

static void what_another_node_alone_saves_is_marked_too(void **state)
{
	struct place *place = *state;
	struct gang gang;

	gang_run(&gang, place,
		 order_apart(place, 2,
			     "[ $k = 1 ] || { marked 10; exit; }; save 10; marked 10; save 20"));
	assert_true(is_marked(place, "step-20"));
}

static void what_is_saved_when_told_to_stop_is_marked_within_the_grace(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ready = place_path(place, "ready-0");
	AUTO(auto_free) char *beneath = place_path(place, "ready-1");
	/* Node 1's child leaves when its shell is gone: a shell that lives to see its child's end
	 * has it for its own, and dies of the signal all the same, which is to be cut off. */
	AUTO(auto_free)
	char *what = mem_format("until_told=\"touch %s/ready-$k; while :; do sleep 0.05; done\"; "
				"[ $k = 0 ] || { "
				"sh -c \"trap 'while [ -e /proc/\\$PPID ]; do sleep 0.05; done; "
				"exit 0' TERM; $until_told\"; exit; }; "
				"trap 'save 10; exit' TERM; eval \"$until_told\"",
				place->root);
	struct gang gang;
	struct mono told;

	gang_start(&gang, place, order_apart(place, 2, what));
	assert_true(wait_for_state(place, PREFIX, 0, "running"));
	assert_true(wait_for_state(place, PREFIX, 1, "running"));
	assert_true(wait_for_file(ready));
	assert_true(wait_for_file(beneath));
	told = clock_mono_now();
	for (int i = 0; i < 2; i++)
		kill(gang.pids[i], SIGTERM);
	gang_end(&gang);
	assert_true(clock_mono_now().ms - told.ms < GRACE_MS);
	assert_true(is_marked(place, "step-10"));
}

static void a_drain_waits_for_the_shards_of_all(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *drain = place_path(place, PREFIX DRAIN_FILE);
	AUTO(auto_free)
	char *what = mem_format("trap 'save 10' USR1; touch %s/ready-$k; "
				"while :; do sleep 0.05; done",
				place->root);
	json_auto_t *files = NULL;
	struct gang gang;

	gang_start(&gang, place, order_apart(place, 3, what));
	/* A command without its handler yet is stopped, and one that has not begun never does:
	 * nothing would be saved there. */
	for (int i = 0; i < 3; i++) {
		AUTO(auto_free) char *ready = mem_format("%s/ready-%d", place->root, i);

		assert_true(wait_for_file(ready));
	}
	write_file(drain, "{}", 0600);
	gang_end(&gang);
	for (int i = 0; i < 3; i++) {
		json_auto_t *body = report_of(place, PREFIX, i);

		assert_string_equal(js_str(body, "stopped"), "drain");
		assert_true(js_bool(json_object_get(body, "drain"), "signalled", false));
		assert_int_equal(js_bool(json_object_get(body, "drain"), "marked", false), i == 0);
	}
	files = files_of(place, "step-10");
	assert_int_equal(json_array_size(files), 3);
}

static void who_dies_between_two_shards_leaves_the_one_before(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *name = NULL;
	AUTO(auto_free) char *why = NULL;
	json_auto_t *body = NULL;
	struct gang gang;
	json_t *order = order_apart(place, 2,
				    "save 10; marked 10; [ $k = 0 ] || { kill -9 $PPID; exit; }; "
				    "save 20");

	js_put(order, "heartbeat_ms", json_integer(50)); /* the dead one's silence is waited for */
	gang_start(&gang, place, order);
	gang_end(&gang);
	assert_int_equal(gang.ends[1], -SIGKILL);
	assert_int_equal(gang.ends[0], AGENT_EXIT_FAILED);
	body = report(place);
	assert_string_equal(js_str(json_object_get(body, "error"), "class"), "transient-infra");
	assert_has(js_str(json_object_get(body, "error"), "message"), "node 1 has not reported");
	assert_false(is_marked(place, "step-20"));
	name = chosen(place);
	assert_string_equal(name, "step-10");
	why = why_of(place, "step-20");
	assert_has(why, "node 1");
}

static void who_ended_well_and_left_something_behind_was_not_cut_off(void **state)
{
	struct place *place = *state;
	json_t *order = order_apart(place, 2,
				    "[ $k = 1 ] || { save 10; exit; }; "
				    "(trap '' TERM; exec sleep 60) & exit 0");
	struct gang gang;

	js_put(order, "heartbeat_ms", json_integer(UNSETTLED_MS));
	gang_run(&gang, place, order);
	assert_true(is_marked(place, "step-10"));
}

/* Node 0 waits for the others. */
static bool wait_for_last(const struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, "far/shards/node-0.json");

	for (int i = 0; i < LOOKS; i++) {
		AUTO(auto_free) char *text = fs_exists(path) ? read_file(path, NULL) : NULL;

		if (text && strstr(text, "\"last\":true"))
			return true;
		pause_ms(10);
	}
	return false;
}

static void others_hear_that_node_0_has_ended_though_not_at_once(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ended = place_path(place, PREFIX ENDED_FILE);
	AUTO(auto_free) char *go = place_path(place, "go");
	AUTO(auto_free)
	char *what = mem_format("save 10; [ $k = 0 ] || until_there %s", go);
	AUTO(err_freep) struct err *err = NULL;
	struct gang gang;

	must(fs_mkdirs(ended, &err), &err); /* no place for it */
	gang_start(&gang, place, order_apart(place, 2, what));
	assert_true(wait_for_last(place));
	assert_int_equal(rmdir(ended), 0);
	assert_true(wait_for_file(ended));
	write_file(go, "", 0600);
	gang_end(&gang);
	assert_int_equal(gang.ends[0] | gang.ends[1], 0);
}

static void what_a_node_saves_after_node_0_has_ended_is_not_missing(void **state)
{
	struct place *place = *state;
	json_auto_t *files = NULL;
	struct gang gang;

	/* Node 1 is quiet for so long that node 0's shard is taken for the whole. */
	gang_run(&gang, place,
		 order_apart(place, 2, "[ $k = 0 ] || { marked 10; sleep 0.5; }; save 10"));
	assert_true(is_marked(place, "step-10"));
	files = files_of(place, "step-10");
	assert_int_equal(json_array_size(files), 2);
}

static void who_was_stopped_with_the_others_does_not_take_them_for_dead(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *go = place_path(place, "go");
	AUTO(auto_free)
	char *what = mem_format("[ $k = 0 ] || until_there %s/go; save 10", place->root);
	json_t *order = order_apart(place, 2, what);
	pid_t stopped[3]; /* node 0's first: it goes on first */
	struct gang gang;

	js_put(order, "heartbeat_ms", json_integer(200)); /* silent after 6 s */
	gang_start(&gang, place, order);
	assert_true(wait_for_last(place));
	stopped[0] = checkpointer_of(gang.pids[0]);
	stopped[1] = gang.pids[1];
	stopped[2] = checkpointer_of(gang.pids[1]);
	for (size_t i = 0; i < STK_LENGTH(stopped); i++)
		kill(stopped[i], SIGSTOP);
	pause_ms(7000);
	kill(stopped[0], SIGCONT);
	pause_ms(1000);
	for (size_t i = 1; i < STK_LENGTH(stopped); i++)
		kill(stopped[i], SIGCONT);
	write_file(go, "", 0600);
	gang_end(&gang);
	assert_true(is_marked(place, "step-10"));
}

/* Node 1 breaks off when node 0 has saved, and before it has. */
static void run_broken(const struct place *place, int attempt, const char *saves)
{
	AUTO(auto_free)
	char *what = mem_format("[ $k = 1 ] || { %s; touch %s/saved-%d; while :; do sleep 0.05; "
				"done; }; until_there %s/saved-%d; exit 1",
				saves, place->root, attempt, place->root, attempt);
	AUTO(auto_free) char *failed = place_path(place, PREFIX FAILED_FILE);
	json_t *order = order_apart(place, 2, what);
	struct gang gang;

	unlink(failed); /* of the attempt before */
	js_put(order, "attempt", json_integer(attempt));
	gang_start(&gang, place, order);
	gang_end(&gang);
	assert_int_equal(gang.ends[1], 1);
}

static void who_was_cut_off_before_its_first_shard_may_have_had_one(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *why = NULL;

	/* One checkpoint tells nothing of the other. */
	run_broken(place, 1, "save 5; save 10; sent 10");
	assert_false(is_marked(place, "step-5"));
	assert_false(is_marked(place, "step-10"));
	why = why_of(place, "step-10");
	assert_string_equal(why, "node 1 was disconnected before it saved any part");
	/* The node had no part in the one before the last, which is whole: nor has it in this
	 * one. */
	run_broken(place, 2, "save 20; marked 20; save 30");
	assert_true(is_marked(place, "step-20"));
	assert_true(is_marked(place, "step-30"));
}

static void the_same_file_of_two_nodes_is_part_of_both(void **state)
{
	struct place *place = *state;
	json_auto_t *files = NULL;
	struct gang gang;

	gang_run(&gang, place, order_apart(place, 3, "save 10; echo {} > $c/step-10/config.json"));
	files = files_of(place, "step-10");
	assert_int_equal(json_array_size(files), 4);
}

static void two_nodes_that_do_not_agree_on_a_file_are_named(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *why = NULL;
	json_auto_t *body = NULL;
	struct gang gang;

	gang_start(&gang, place,
		   order_apart(place, 3, "save 10; echo $((k / 2)) > $c/step-10/common.bin"));
	gang_end(&gang);
	assert_false(is_marked(place, "step-10"));
	why = why_of(place, "step-10");
	assert_has(why, "'common.bin'");
	assert_has(why, "node");
	body = report(place);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	assert_string_equal(js_str(json_object_get(body, "error"), "class"), "user-config");
}

static void a_shard_that_changes_later_is_marked_anew(void **state)
{
	struct place *place = *state;
	json_auto_t *files = NULL;
	struct gang gang;

	gang_run(&gang, place,
		 order_apart(place, 2,
			     "save 10; marked 10; [ $k = 0 ] || save 10 another-part; "
			     "until grep -q '\"size\":14' $far/marks/step-10" MARK_SUFFIX
			     "; do sleep 0.05; done"));
	files = files_of(place, "step-10");
	assert_int_equal(json_array_size(files), 2);
	assert_int_equal(js_int(json_array_get(files, 1), "size", 0), 14);
}

static void a_kind_is_judged_by_the_files_of_all(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *why = NULL;
	json_t *order = order_apart(
		place, 2,
		"shard() { d=$c/step-$1; mkdir -p $d; echo x > $d/__${k}_0.distcp; }; "
		"meta() { printf '\\200\\002 __0_0.distcp %s.distcp .' $1 > $d/.metadata; }; "
		"shard 10; [ $k = 0 ] || meta __1_0; marked 10; "
		"shard 20; [ $k = 0 ] || meta __2_0");
	struct gang gang;

	js_put_str(json_object_get(order, "checkpoint"), "kind", "dcp");
	gang_start(&gang, place, order);
	gang_end(&gang);
	assert_true(is_marked(place, "step-10"));
	assert_false(is_marked(place, "step-20"));
	why = why_of(place, "step-20");
	assert_has(why, "'__2_0.distcp' is missing");
}

static void a_part_that_is_cut_off_is_not_taken_for_nothing(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *why = NULL;
	struct gang gang;

	gang_start(&gang, place,
		   order_apart(place, 2,
			       "[ $k = 1 ] || { save 10; exit; }; mkdir -p $c/step-10; "
			       "printf '{\"a\":' > $c/step-10/state.json"));
	gang_end(&gang);
	assert_false(is_marked(place, "step-10"));
	why = why_of(place, "step-10");
	assert_has(why, "on node 1 'state.json'");
}

/* A file, too, has its step in its name, before its ending. */
static void a_file_that_is_cut_off_on_one_node_is_told_with_its_step(void **state)
{
	struct place *place = *state;
	json_auto_t *body = NULL;
	const json_t *row;
	struct gang gang;

	gang_run(&gang, place,
		 order_apart(place, 2,
			     "[ $k = 0 ] || { printf x > $c/step-10.safetensors; exit; }; "
			     "printf '\\002\\0\\0\\0\\0\\0\\0\\0{}' > $c/step-10.safetensors"));
	body = report(place);
	row = json_array_get(js_path(body, "checkpoint.passed"), 0);
	assert_string_equal(js_str(row, "name"), "step-10.safetensors");
	assert_has(js_str(row, "why"), "on node 1");
	assert_has(js_str(row, "hint"), "each node must save its whole part");
	assert_int_equal(js_int(row, "step", -1), 10);
}

static void what_is_kept_no_more_goes_on_all_nodes(void **state)
{
	struct place *place = *state;
	json_t *order = order_apart(
		place, 2,
		"for i in 1 2 3; do save $i; marked $i; done; "
		"while [ -e $c/step-1 ] || [ -e $far/step-2/shard-1.bin ]; do sleep 0.05; "
		"done");
	struct gang gang;

	js_put(json_object_get(order, "checkpoint"), "keep", json_integer(1));
	gang_run(&gang, place, order);
	assert_true(is_marked(place, "step-3"));
	assert_false(is_marked(place, "step-2"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)
	const struct CMUnitTest tests[] = {
		TEST(each_node_brings_its_shard_and_each_gets_all_of_them),
		TEST(what_has_no_room_here_is_told_before_it_is_fetched),
		TEST(what_node_0_alone_saves_is_marked_while_all_go_on_and_at_the_end),
		TEST(what_another_node_alone_saves_is_marked_too),
		TEST(what_is_saved_when_told_to_stop_is_marked_within_the_grace),
		TEST(a_drain_waits_for_the_shards_of_all),
		TEST(who_dies_between_two_shards_leaves_the_one_before),
		TEST(who_ended_well_and_left_something_behind_was_not_cut_off),
		TEST(others_hear_that_node_0_has_ended_though_not_at_once),
		TEST(what_a_node_saves_after_node_0_has_ended_is_not_missing),
		TEST(who_was_stopped_with_the_others_does_not_take_them_for_dead),
		TEST(who_was_cut_off_before_its_first_shard_may_have_had_one),
		TEST(the_same_file_of_two_nodes_is_part_of_both),
		TEST(two_nodes_that_do_not_agree_on_a_file_are_named),
		TEST(a_shard_that_changes_later_is_marked_anew),
		TEST(a_kind_is_judged_by_the_files_of_all),
		TEST(a_part_that_is_cut_off_is_not_taken_for_nothing),
		TEST(a_file_that_is_cut_off_on_one_node_is_told_with_its_step),
		TEST(what_is_kept_no_more_goes_on_all_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
