/* Work of the agent and its helpers on a node of a far workspace, with each of their calls failing
 * in turn: see strikes.h. The order is that of a run that has ended, as if its service had started
 * the job again. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/checkpoints/cache_push.h"
#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/checkpoints/fetch.h"
#include "jobs/node/checkpoints/resume.h"
#include "jobs/node/claim.h"
#include "jobs/node/health/health.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/prepare.h"
#include "jobs/store/store.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/strikes.h"
#include "tests/world/strikes_node.h"
#include "tests/world/tree.h"
#include "tests/world/workspace.h"

#define SAVED "/srv/user/saved"
#define PARTS "/srv/user/parts-"
#define CACHE STRIKES_NODE_BUCKET "/jax"
#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
/* A whole zstd frame of one byte. */
#define FRAME "\x28\xb5\x2f\xfd\x20\x01\x09\0\0x"

/* ---- before the command ---- */

static void put_flag(struct schedule *places)
{
	AUTO(auto_free) char *key = mem_format("runs/%s/train-1/" FAILED_FILE, places->run);

	strikes_run_to_end(places);
	workspace_put(key, "{\"v\":1,\"restart\":0}");
}

static int set_up(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(claim_release) struct claim claim = { 0 };

	if (strikes_node_load(run, &config, err) < 0 ||
	    store_open(config.workspace, &store, err) < 0 ||
	    strikes_node_claim(&config, &claim, store, err) < 0)
		return -1;
	if (node_flag_clear(&config, store, FAILED_FILE, err) < 0 ||
	    prepare_folders(&config, store, err) < 0 || fetch_all(&config, err) < 0 ||
	    resume_adopt(&config, err) < 0 || prepare_checkpoint(&config, err) < 0)
		return -1;
	if (!config.order->resume_from)
		return strikes_node_refuse(err, "no checkpoint was found");
	return 0;
}

static int check_set_up(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *script = NULL;
	AUTO(auto_free) char *resumed = NULL;

	if (strikes_node_load(run, &config, err) < 0 || resume_adopt(&config, err) < 0 ||
	    store_open(config.workspace, &store, err) < 0)
		return -1;
	if (node_flag_is_set(&config, store, FAILED_FILE, 0))
		return strikes_node_refuse(err, "the flag of the start before is there");
	script = fs_join(config.src, "train.py");
	resumed = agent_config_resumed(&config);
	if (!fs_exists(script))
		return strikes_node_refuse(err, "the source is not there");
	if (!resumed || !fs_exists(resumed))
		return strikes_node_refuse(err, "the checkpoint is not there");
	return 0;
}

static void take_claim_away(struct schedule *places)
{
	AUTO(auto_free) char *key = mem_format("runs/%s/claim/train", places->run);

	strikes_run_to_end(places);
	if (!workspace_remove(key))
		world_broken("the run had no claim");
}

static int show_claim(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	AUTO(store_freep) struct store *store = NULL;

	if (strikes_node_load(run, &config, err) < 0 ||
	    store_open(config.workspace, &store, err) < 0 ||
	    strikes_node_claim(&config, &claim, store, err) < 0)
		return -1;
	switch (claim_show(&claim, &config, store)) {
	case 1:
		return 0;
	case 0:
		return err_set(err, EXIT_DEFECT, "the claim is another's by now");
	default:
		return strikes_node_refuse(err, "the claim cannot be read");
	}
}

static int check_claim(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	AUTO(store_freep) struct store *store = NULL;

	if (strikes_node_load(run, &config, err) < 0 ||
	    store_open(config.workspace, &store, err) < 0)
		return -1;
	claim_init(&claim, &config);
	if (claim_check(&claim, &config, store) != 0)
		return strikes_node_refuse(err, "there is no claim of another process");
	return 0;
}

/* ---- the compile cache ---- */

static void use_jax(struct agent_config *config)
{
	MESSAGE_SET_TEXT(&config->order->compile, kind, "jax");
	MESSAGE_SET_TEXT(&config->order->compile, cache, CACHE);
}

static void put_cache(struct schedule *places)
{
	strikes_run_to_end(places);
	workspace_put("jax/jit_c-" HEX "-cache", "of an earlier run");
	world_play_until(now_ns + WORLD_S);
	workspace_put("jax/jit_a-" HEX "-cache", "of a later run");
	workspace_put("jax/stoker/claims/x", "{}");
}

static int fetch_cache(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	use_jax(&config);
	config.restart = 0;
	return fetch_all(&config, err);
}

static int check_fetched(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(auto_free) char *earlier = NULL;
	AUTO(auto_free) char *later = NULL;

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	earlier = fs_join(config.dir, "cache/jit_c-" HEX "-cache");
	later = fs_join(config.dir, "cache/jit_a-" HEX "-cache");
	return fs_exists(earlier) && fs_exists(later)
		       ? 0
		       : strikes_node_refuse(err, "a graph is not there");
}

static int push_cache(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(cache_push_freep) struct cache_push *push = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *folder = NULL;
	json_auto_t *news = NULL;

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	use_jax(&config);
	path = fs_join(config.dir, "cache/jit_b-" HEX "-cache");
	folder = fs_dirname(path);
	if (fs_mkdirs(folder, err) < 0 || fs_write_atomic(path, FRAME, 10, 0600, err) < 0 ||
	    cache_push_open(&config, &push, err) < 0)
		return -1;
	news = cache_push_news(push, true, NULL, NULL);
	return js_is(news, "news", "pushed") ? 0 : strikes_node_refuse(err, js_str(news, "why"));
}

static int check_pushed(const char *run, struct err **err)
{
	(void)run;
	return strikes_node_expect("jax/jit_b-" HEX "-cache", NULL, err);
}

static void put_fetched(struct schedule *places)
{
	put_cache(places);
	strikes_do(set_up);
	strikes_do(fetch_cache);
}

static int discard_fetched(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	use_jax(&config);
	fetch_discard(&config);
	return 0;
}

static int check_discarded(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(auto_free) char *resume = NULL;
	AUTO(auto_free) char *cache = NULL;

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	resume = fs_join(config.dir, "resume");
	cache = fs_join(config.dir, "cache");
	if (fs_exists(resume) || fs_exists(cache))
		return strikes_node_refuse(err, "what was fetched is still there");
	return 0;
}

/* ---- checkpoints ---- */

static void put_saved(struct schedule *places)
{
	strikes_run_to_end(places);
	tree_put(places->hosts[0], SAVED "/step-90/state.bin", "state", 5, 0600);
	tree_put(places->hosts[0], SAVED "/step-90/meta.json", "{\"state_bytes\":5}", 17, 0600);
}

static void put_parts(struct schedule *places)
{
	strikes_run_to_end(places);
	tree_put(places->hosts[0], PARTS "0/step-90/shard-0.bin", "part0", 5, 0600);
	tree_put(places->hosts[0], PARTS "1/step-90/shard-1.bin", "part1", 5, 0600);
}

static int begin(const char *run, struct agent_config *config, struct claim *claim,
		 struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;

	if (strikes_node_load(run, config, err) < 0 ||
	    store_open(config->workspace, &store, err) < 0)
		return -1;
	MESSAGE_SET_JSON(&config->order->checkpoint, keep, json_integer(1));
	return strikes_node_claim(config, claim, store, err);
}

/* The checkpointer's last pass, as after the command's end. */
static int keep(const struct agent_config *config, const struct claim *claim, struct err **err)
{
	static const char order[] = "{\"order\":\"" CHECKPOINTER_ORDER_LAST "\"}\n";
	json_auto_t *lost = NULL;
	int news, done = strikes_node_obey(checkpointer_work, config, claim, order, &news, err);

	if (news >= 0)
		lost = strikes_node_said(news, "lost");
	if (done < 0)
		return -1;
	if (done > 0 || lost)
		return strikes_node_refuse(err, lost ? js_str(lost, "why") : "it did not begin");
	return 0;
}

static int keep_saved(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };

	if (begin(run, &config, &claim, err) < 0)
		return -1;
	free(config.checkpoint);
	config.checkpoint = mem_copy(SAVED);
	return keep(&config, &claim, err);
}

/* A surplus that could not be removed goes with the next checkpoint. */
static int keep_next(const char *run, struct err **err)
{
	if (fs_mkdirs(SAVED "/step-91", err) < 0 ||
	    fs_write_atomic(SAVED "/step-91/state.bin", "state", 5, 0600, err) < 0 ||
	    fs_write_atomic(SAVED "/step-91/meta.json", "{\"state_bytes\":5}", 17, 0600, err) < 0)
		return -1;
	return keep_saved(run, err);
}

/* Two nodes with a part each. The other one has ended when node 0, which marks, looks. */
static int keep_parts(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };

	if (begin(run, &config, &claim, err) < 0)
		return -1;
	config.nodes = 2;
	config.order->shared_checkpoints = false; /* a folder of its own for each node */
	for (int node = 1; node >= 0; node--) {
		AUTO(claim_release) struct claim own = { 0 };
		AUTO(store_freep) struct store *store = NULL;
		enum claim_state state;

		config.node = node;
		free(config.checkpoint);
		config.checkpoint = mem_format(PARTS "%d", node);
		claim_init(&own, &config);
		if (node > 0 && (store_open(config.workspace, &store, err) < 0 ||
				 claim_take(&own, &config, store, &state, err) < 0))
			return -1;
		if (keep(&config, node ? &own : &claim, err) < 0)
			return -1;
	}
	return 0;
}

static int count_mark(void *arg, const struct store_object *object, struct err **err)
{
	int *count = arg;

	(void)err;
	*count += strstr(object->key, MARK_SUFFIX) != NULL;
	return 0;
}

static int check_kept(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	struct store_object object;
	int count = 0, there;

	if (strikes_node_load(run, &config, err) < 0 ||
	    store_open(config.order->checkpoint.root, &store, err) < 0 ||
	    store_list(store, "marks/", count_mark, &count, err) < 0)
		return -1;
	there = store_stat(store, "marks/step-91" MARK_SUFFIX, &object, err);
	if (there < 0)
		return -1;
	if (!there || count != 1)
		return strikes_node_refuse(err, there ? "what is not kept is there"
						      : "it is not marked");
	return 0;
}

/* Parts that do not agree on a file, after a checkpoint of that name that was whole. */
static void put_conflict(struct schedule *places)
{
	put_parts(places);
	strikes_do(keep_parts);
	tree_put(places->hosts[0], PARTS "0/step-90/common.bin", "one", 3, 0600);
	tree_put(places->hosts[0], PARTS "1/step-90/common.bin", "another", 7, 0600);
}

static int refuse_parts(const char *run, struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;

	if (keep_parts(run, &why) == 0)
		return strikes_node_refuse(err, "it is said to be kept");
	if (strstr(why->message, "'common.bin'"))
		return 0;
	*err = TAKE(why);
	return -1;
}

/* The mark of the one before is gone. */
static int check_refused(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	struct store_object object;
	int there;

	if (strikes_node_load(run, &config, err) < 0 ||
	    store_open(config.order->checkpoint.root, &store, err) < 0)
		return -1;
	there = store_stat(store, "marks/step-90" MARK_SUFFIX, &object, err);
	return there > 0 ? strikes_node_refuse(err, "it is marked") : there;
}

/* The mark names the parts of both. */
static int check_parts(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *why = NULL;
	struct ckpt_root root = { .path = "", .attempt = 1 };

	if (strikes_node_load(run, &config, err) < 0 ||
	    store_open(config.order->checkpoint.root, &store, err) < 0)
		return -1;
	root.nonce = config.nonce;
	root.store = store;
	if (checkpoint_mark_read(&root, "step-90", &mark, err) < 0 ||
	    checkpoint_mark_holds(&mark, &why, err) < 0)
		return -1;
	if (why || json_array_size(mark.files) != 2)
		return strikes_node_refuse(err, why ? why : "the mark does not name both parts");
	return 0;
}

/* ---- the check-up ---- */

static void keep_outcome(void *arg, const json_t *said)
{
	json_decref(*(json_t **)arg);
	*(json_t **)arg = json_deep_copy(said);
}

/* A call that fails is no illness. */
static int check_up(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	struct claim claim = { .master_addr = (char[]){ "127.0.0.1" } };
	json_auto_t *said = NULL;

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	MESSAGE_MARK(config.order, health);
	config.order->health.full = true;
	config.order->health.timeout_ms = 60000;
	config.order->health.ops = json_array();
	health_work(&config, &claim, keep_outcome, &said);
	if (js_is(said, "outcome", HEALTH_HEALTHY))
		return 0;
	if (!js_is(said, "outcome", HEALTH_FAILING) || !js_str(said, "message"))
		return err_set(err, EXIT_DEFECT, "the outcome is %s", js_str(said, "outcome"));
	return strikes_node_refuse(err, js_str(said, "message"));
}

static const struct strike_action actions[] = {
	{ .name = "set up",
	  .scenario = "bucket",
	  .before = put_flag,
	  .act = set_up,
	  .check = check_set_up },
	{ .name = "fetch the cache",
	  .scenario = "bucket",
	  .before = put_cache,
	  .act = fetch_cache,
	  .check = check_fetched },
	{ .name = "push to the cache",
	  .scenario = "bucket",
	  .before = put_cache,
	  .act = push_cache,
	  .check = check_pushed },
	{ .name = "discard what was fetched",
	  .scenario = "bucket",
	  .before = put_fetched,
	  .act = discard_fetched,
	  .check = check_discarded },
	{ .name = "keep checkpoints",
	  .scenario = "bucket",
	  .before = put_saved,
	  .act = keep_saved,
	  .again = keep_next,
	  .check = check_kept },
	{ .name = "keep parts",
	  .scenario = "bucket",
	  .before = put_parts,
	  .act = keep_parts,
	  .check = check_parts },
	{ .name = "refuse parts",
	  .scenario = "bucket",
	  .before = put_conflict,
	  .act = refuse_parts,
	  .check = check_refused },
	{ .name = "bring outputs",
	  .scenario = "bucket",
	  .before = strikes_node_put_made,
	  .act = strikes_node_bring_made,
	  .check = strikes_node_check_brought },
	{ .name = "upload the end",
	  .scenario = "bucket",
	  .before = strikes_node_put_report,
	  .act = strikes_node_upload,
	  .check = strikes_node_check_uploaded },
	{ .name = "show the claim",
	  .scenario = "bucket",
	  .before = take_claim_away,
	  .act = show_claim,
	  .check = check_claim },
	{ .name = "check up", .scenario = "bucket", .before = strikes_run_to_end, .act = check_up },
};

int main(int argc, char **argv)
{
	return strikes_main(argc, argv, actions, STK_LENGTH(actions));
}
