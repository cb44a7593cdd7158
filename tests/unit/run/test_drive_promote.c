/* A turn of a retraining from the end of its training to the pointer, as its driver carries it out.
 * See jobs/run/promote.c. */
#include "tests/unit/checkpoint/trees.h"

#include "drive_fixture.h"

#include "jobs/checkpoint/checkpoint.h"
#include "jobs/model/model.h"

/* A run that promotes, and that was given this pointer, or none. */
static void create_turn(const char *pointer)
{
	AUTO(auto_free)
	char *promote = mem_format("'promote':{'url':'%s/models','from':'checkpoint','when':"
				   "'always','keep':'all'}",
				   dir);
	AUTO(auto_free)
	char *given = mem_format("{'promotes':true%s%s}", pointer ? ",'pointer':" : "",
				 pointer ? pointer : "");
	json_auto_t *plan = plan_with(promote), *inputs = quoted_json(given);
	struct event ev = { .kind = EV_RUN_CREATED };

	appended = 0;
	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET(&ev, inputs, inputs);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 1);
	append(&ev);
}

/* The agent has marked a checkpoint. */
static void save(int number)
{
	AUTO(auto_free) char *root = in_dir("ws/runs/r1/train-1/checkpoints");
	const struct ckpt_owner owner = { "r1", "n", 1, NULL, 0 };
	struct err *err = NULL;

	play.until_end = number < 2;
	if (number != 1)
		return;
	make_hf(root, "checkpoint-10", 10);
	{
		AUTO(checkpoint_list_release) struct ckpt_list list = found_in(root, "hf");

		checkpoint_mark(CKPT_FOLDER(root), &list.items[0], &owner, (struct utc){ 1 }, &err);
	}
	assert_no_error(err);
}

/* The newest entry; its run, "" if there is none. */
static void assert_head(int64_t generation, const char *run)
{
	AUTO(model_freep) struct model *model = NULL;
	AUTO(model_entry_release) struct model_entry head = { 0 };
	AUTO(auto_free) char *url = in_dir("models");
	struct err *err = NULL;

	if (model_open(url, "n", &model, &err) < 0 || model_head(model, false, &head, &err) < 0)
		fail_msg("%s", err->message);
	assert_int_equal(head.generation, generation);
	assert_string_equal(generation ? js_str(head.body, "run") : "", run);
}

/* Another run is promoted meanwhile. */
static void promote_other(void)
{
	AUTO(model_freep) struct model *model = NULL;
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	AUTO(auto_free) char *url = in_dir("models");
	AUTO(auto_free) char *folder = in_dir("other/step-1");
	const struct model_source source = { .run = "other", .attempt = 1, .url = folder };
	json_auto_t *version = json_object();
	const struct model_draft draft = {
		.generation = 1, .before = "", .nonce = "m", .run = "other", .version = version
	};
	json_t *brought = NULL;
	struct err *err = NULL;

	put_text(folder, "w.bin", "weights");
	if (model_open(url, "n", &model, &err) < 0 ||
	    model_bring(model, &source, NULL, NULL, &brought, &err) < 0)
		fail_msg("%s", err->message);
	js_put(version, "model", brought);
	if (model_commit(model, &draft, &entry, &err) != MODEL_PROMOTED)
		fail_msg("%s", err ? err->message : "overtaken");
}

static void a_turn_promotes_its_candidate(void **state)
{
	AUTO(auto_free) char *pointer = in_dir("models/current.json");

	(void)state;
	create_turn(NULL);
	play.at_describe = save;
	drive_ends(EXIT_DONE);
	assert_int_equal(count_of("promote.intended"), 1);
	assert_int_equal(count_of("promote.done"), 1);
	assert_int_equal(newest_int("promote.done", "generation"), 1);
	assert_string_equal(newest("run.ended", "state"), "succeeded");
	assert_head(1, "r1");
	assert_true(fs_exists(pointer));
}

static void a_version_that_came_first_is_not_replaced(void **state)
{
	(void)state;
	create_turn(NULL);
	promote_other();
	play.at_describe = save;
	drive_ends(EXIT_GATE);
	assert_int_equal(count_of("promote.done"), 0);
	assert_string_equal(newest("promote.overtaken", "holder"), "other");
	assert_string_equal(newest("run.ended", "state"), "refused");
	assert_head(1, "other");
}

static void a_promotion_that_failed_goes_on_with_its_intent(void **state)
{
	AUTO(auto_free) char *models = in_dir("models");
	AUTO(auto_free) char *entries = in_dir("models/entries");
	AUTO(err_freep) struct err *err = NULL;
	int exit_code;

	(void)state;
	create_turn(NULL);
	put_text(models, "entries", ""); /* where a folder must be */
	play.at_describe = save;
	assert_int_equal(drive(&exit_code, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_int_equal(count_of("promote.intended"), 1);
	assert_int_equal(count_of("promote.done"), 0);
	assert_int_equal(unlink(entries), 0);
	drive_ends(EXIT_DONE);
	assert_int_equal(count_of("promote.intended"), 1);
	assert_int_equal(count_of("promote.done"), 1);
	assert_head(1, "r1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_turn_promotes_its_candidate),
		TEST(a_version_that_came_first_is_not_replaced),
		TEST(a_promotion_that_failed_goes_on_with_its_intent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
