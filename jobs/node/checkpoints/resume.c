/* Chooses the checkpoint that a start goes on from: see resume.h. */
#include "jobs/node/checkpoints/resume.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/node_flag.h"
#include "jobs/store/store_json.h"

#define RESUME_FILE   "resume.json"
#define PAUSE_MS      100
#define PAUSE_MOST_MS 5000

static const char *root_of(const struct agent_config *config)
{
	const char *root = config->order->checkpoint.root;

	return root && *root ? root : NULL;
}

bool resume_needed(const struct agent_config *config)
{
	return config->restart > 0 && !config->scratch && root_of(config);
}

static void apply(const struct agent_config *config, const json_t *choice)
{
	const char *url = js_str(choice, "resume_from");

	if (!url)
		return;
	MESSAGE_SET_TEXT(config->order, resume_from, url);
	MESSAGE_SET(config->order, resume_step, js_int(choice, "resume_step", 0));
}

/* If two checkpoints have the same step, the later attempt's is taken, as a new attempt would. */
static int choose(const struct agent_config *config, json_t *ret, struct err **err)
{
	const char *place = root_of(config);
	struct ckpt_root root = { .path = "", .attempt = config->attempt, .nonce = config->nonce };
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	bool resumes = config->order->resume_from != NULL;

	if (!place)
		return 0;
	if (place[0] == '/') {
		root.path = place;
	} else {
		if (store_open(place, &store, err) < 0)
			return -1;
		root.store = store;
	}
	if (checkpoint_choose(&root, 1, config->run, INT64_MAX, &choice, err) < 0)
		return -1;
	if (choice.found && (!resumes || choice.mark.step >= config->order->resume_step)) {
		js_put_str(ret, "resume_from", choice.mark.url);
		js_put(ret, "resume_step", json_integer(choice.mark.step));
	}
	return 0;
}

/* Returns 1 with node 0's choice for this start, 0 if there is none yet, -1 with an error. */
static int read_choice(const struct agent_config *config, struct store *store, json_t **ret,
		       struct err **err)
{
	AUTO(auto_free) char *key = agent_config_key(config, RESUME_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	json_auto_t *choice = NULL;
	int there = store_get(store, key, REPORT_MAX, &text, NULL, err);

	if (there <= 0)
		return there;
	if (js_parse(text.text, text.len, key, &choice, err) < 0)
		return -1;
	if (js_int(choice, "restart", 0) != config->restart)
		return 0;
	*ret = json_incref(choice);
	return 1;
}

static int wait_for_choice(const struct agent_config *config, struct store *store, json_t **ret,
			   struct err **err)
{
	int64_t end_ms = clock_mono_now().ms + config->claim_wait_ms, pause = PAUSE_MS;
	int there;

	while ((there = read_choice(config, store, ret, err)) == 0) {
		if (node_flag_is_set(config, store, FAILED_FILE, config->restart))
			return err_set(err, EXIT_UNREACHABLE, "another node has failed");
		if (clock_mono_now().ms >= end_ms)
			return err_set(
				err, EXIT_UNREACHABLE,
				"node 0 has not named the checkpoint to resume from within %lld s",
				(long long)(config->claim_wait_ms / 1000));
		(void)cancel_pause(pause);
		pause = 2 * pause < PAUSE_MOST_MS ? 2 * pause : PAUSE_MOST_MS;
	}
	return there < 0 ? -1 : 0;
}

int resume_agree(const struct agent_config *config, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(config->dir, RESUME_FILE);
	AUTO(auto_free) char *key = agent_config_key(config, RESUME_FILE);
	AUTO(store_freep) struct store *store = NULL;
	json_auto_t *choice = NULL;
	AUTO(auto_free) char *line = NULL;
	int done;

	if (!resume_needed(config))
		return 0;
	if (store_open(config->workspace, &store, err) < 0)
		return -1;
	if (config->node == 0) {
		choice = json_object();
		js_put(choice, "v", json_integer(1));
		js_put(choice, "restart", json_integer(config->restart));
		done = choose(config, choice, err);
		if (done == 0 && config->nodes > 1)
			done = store_json_put(store, key, choice, err);
	} else {
		done = wait_for_choice(config, store, &choice, err);
	}
	if (done < 0)
		return err_wrap(err, "cannot find the checkpoint to resume from");
	line = js_line(choice);
	apply(config, choice);
	return fs_write_atomic(path, line, strlen(line), 0600, err);
}

int resume_adopt(const struct agent_config *config, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(config->dir, RESUME_FILE);
	json_auto_t *choice = NULL;

	if (!resume_needed(config))
		return 0;
	if (js_load(path, REPORT_MAX, &choice, err) < 0)
		return -1;
	apply(config, choice);
	return 0;
}
