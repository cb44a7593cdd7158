/* Strikes on what the agent and its helpers bring to a far workspace at the end of an attempt:
 * outputs, log and report. See strikes_node.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/mem.h"
#include "jobs/node/upload/outputs.h"
#include "jobs/node/upload/uploader.h"
#include "tests/world/strikes.h"
#include "tests/world/strikes_node.h"
#include "tests/world/tree.h"
#include "tests/world/workspace.h"

#define MADE "/srv/user/made"

/* ---- outputs ---- */

/* Links, of which only what leads within the folder loses nothing. */
static int link_made(const char *run, struct err **err)
{
	(void)run;
	if (symlink("nowhere", MADE "/dangling") < 0 || symlink("/etc/hosts", MADE "/away") < 0 ||
	    symlink("model.bin", MADE "/within") < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot link");
	return 0;
}

void strikes_node_put_made(struct schedule *places)
{
	strikes_run_to_end(places);
	tree_put(places->hosts[0], MADE "/model.bin", "weights", 7, 0600);
	tree_put(places->hosts[0], MADE "/deep/er/log.txt", "text", 4, 0600);
	tree_put(places->hosts[0], MADE "/line\nbreak 100%", "odd", 3, 0600);
	tree_put(places->hosts[0], MADE "/latin-\xe9", "odder", 5, 0600);
	tree_put(places->hosts[0], "/etc/hosts", "", 0, 0600);
	strikes_do(link_made);
}

/* The number of links that are left, for that reason. */
static int links_left(const json_t *done)
{
	const json_t *row;
	int count = 0;
	size_t i;

	json_array_foreach (json_object_get(done, "names"), i, row)
		count += (js_is(row, "name", "dangling") &&
			  js_is(row, "why", "is a dangling link")) ||
			 (js_is(row, "name", "away") &&
			  js_is(row, "why", "is a link out of the folder, which is not followed"));
	return count;
}

int strikes_node_bring_made(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	json_auto_t *done = NULL;
	int news[2], links;

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	config.outputs = "made/";
	free(config.output);
	config.output = mem_copy(MADE);
	if (pipe2(news, 0) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	(void)!outputs_work(&config, news[1]);
	close(news[1]);
	done = strikes_node_said(news[0], "done");
	if (!done)
		return strikes_node_refuse(err, "it said nothing");
	if (js_str(done, "why"))
		return strikes_node_refuse(err, js_str(done, "why"));
	links = links_left(done);
	if (js_int(done, "left", 0) > links)
		return strikes_node_refuse(err, "something is left, with its name");
	if (js_int(done, "files", 0) != 4 || js_int(done, "renamed", 0) != 2 || links != 2)
		return err_set(err, EXIT_DEFECT, "some of it is neither there nor left");
	return 0;
}

int strikes_node_check_brought(const char *run, struct err **err)
{
	static const char *const made[][2] = {
		{ "model.bin", "weights" },
		{ "deep/er/log.txt", "text" },
		{ "line%0Abreak 100%25", "odd" },
		{ "latin-%E9", "odder" },
	};

	(void)run;
	for (size_t i = 0; i < STK_LENGTH(made); i++) {
		AUTO(auto_free) char *key = mem_format("made/node-0.restart-1/%s", made[i][0]);

		if (strikes_node_expect(key, made[i][1], err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the log and the report ---- */

#define LINE "the last line of this start\n"

/* The report that lies there is torn; it is no other job's. */
void strikes_node_put_report(struct schedule *places)
{
	AUTO(auto_free)
	char *key = mem_format("runs/%s/train-1/node-0/" REPORT_FILE, places->run);

	strikes_run_to_end(places);
	workspace_put(key, "{\"v\":1,");
}

/* Of a job that never had the claim. */
static char *report_text(const struct agent_config *config)
{
	return mem_format("{\"v\":1,\"run\":\"%s\",\"phase\":\"train\",\"attempt\":1,\"node\":0,"
			  "\"job\":\"%s\",\"nonce\":\"%s\",\"token\":\"%s\",\"state\":\"failed\","
			  "\"exit\":1}",
			  config->run, config->job, config->nonce, config->token);
}

static int note_last(void *arg, const struct store_object *object, struct err **err)
{
	char **last = arg;

	(void)err;
	free(*last);
	*last = mem_copy(object->key);
	return 0;
}

/* Both are in the workspace. */
int strikes_node_check_uploaded(const char *run, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT_MAX(STRIKES_NODE_TEXT_MAX);
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *report = NULL;
	AUTO(auto_free) char *report_key = NULL;
	AUTO(auto_free) char *pieces = NULL;
	AUTO(auto_free) char *last = NULL;

	if (strikes_node_load(run, &config, err) < 0 ||
	    store_open(config.workspace, &store, err) < 0)
		return -1;
	report = report_text(&config);
	report_key = agent_config_node_key(&config, REPORT_FILE);
	pieces = agent_config_node_key(&config, LOG_FILE "/");
	if (strikes_node_expect(report_key, report, err) < 0 ||
	    store_list(store, pieces, note_last, &last, err) < 0 ||
	    (last && store_get(store, last, STRIKES_NODE_TEXT_MAX, &text, NULL, err) < 0))
		return -1;
	return strstr(text.text, LINE) ? 0 : err_set(err, EXIT_DEFECT, "the log's end is missing");
}

/* As after the command's end. */
int strikes_node_upload(const char *run, struct err **err)
{
	static const char order[] = "{\"order\":\"last\"}\n";
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	AUTO(auto_free) char *report = NULL;
	AUTO(auto_free) char *report_path = NULL;
	AUTO(auto_free) char *log_path = NULL;
	int news, done;

	if (strikes_node_load(run, &config, err) < 0)
		return -1;
	claim_init(&claim, &config);
	report = report_text(&config);
	report_path = fs_join(config.dir, REPORT_FILE);
	log_path = fs_join(config.dir, LOG_FILE);
	if (fs_write_atomic(report_path, report, strlen(report), 0600, err) < 0 ||
	    fs_write_atomic(log_path, LINE, strlen(LINE), 0600, err) < 0)
		return -1;
	done = strikes_node_obey(uploader_work, &config, &claim, order, &news, err);
	if (news >= 0)
		close(news);
	if (done > 0)
		return strikes_node_refuse(err, "it has not uploaded all");
	return done < 0 ? -1
			: strikes_node_check_uploaded(run, err); /* it says that all is there */
}
