/* Shared by the strikes on a node: see strikes_node.h. */
#include "tests/world/strikes_node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/mem.h"
#include "jobs/base/text/js.h"

int strikes_node_load(const char *run, struct agent_config *config, struct err **err)
{
	AUTO(auto_free)
	char *url = mem_format(STRIKES_NODE_BUCKET "/runs/%s/train-1/order.json", run);

	if (agent_config_load(url, "0", config, err) < 0)
		return -1;
	config->restart = 1;
	return fs_mkdirs(config->dir, err);
}

int strikes_node_claim(struct agent_config *config, struct claim *ret, struct store *store,
		       struct err **err)
{
	static int64_t starts;
	enum claim_state state;

	config->restart = ++starts;
	claim_init(ret, config);
	if (claim_take(ret, config, store, &state, err) < 0)
		return -1;
	return state == CLAIM_OURS ? 0 : err_set(err, EXIT_REFUSED, "the claim is another's");
}

int strikes_node_refuse(struct err **err, const char *words)
{
	return err_set(err, EXIT_REFUSED, "%s", words);
}

int strikes_node_expect(const char *key, const char *wanted, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(STRIKES_NODE_TEXT_MAX);
	AUTO(store_freep) struct store *store = NULL;
	int there;

	if (store_open(STRIKES_NODE_BUCKET, &store, err) < 0)
		return -1;
	there = store_get(store, key, STRIKES_NODE_TEXT_MAX, &text, NULL, err);
	if (there < 0)
		return -1;
	if (there == 0 || (wanted && strcmp(text.text, wanted) != 0))
		return err_set(err, EXIT_DEFECT, "'%s' is %s", key, there ? "another" : "missing");
	return 0;
}

json_t *strikes_node_said(int news_fd, const char *kind)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	char *save = NULL, buffer[4096];
	json_t *last = NULL;
	ssize_t len;

	while ((len = read(news_fd, buffer, sizeof buffer)) > 0 || (len < 0 && errno == EINTR))
		if (len > 0)
			sb_add(&text, buffer, (size_t)len);
	close(news_fd);
	for (char *line = strtok_r(text.text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		AUTO(err_freep) struct err *ignored = NULL;
		json_auto_t *one = NULL;

		if (js_parse(line, strlen(line), "news", &one, &ignored) == 0 &&
		    js_is(one, "news", kind)) {
			json_decref(last);
			last = json_incref(one);
		}
	}
	return last;
}

int strikes_node_obey(int (*work)(const struct agent_config *config, const struct claim *claim,
				  int news_fd, int orders_fd),
		      const struct agent_config *config, const struct claim *claim,
		      const char *given, int *ret_news, struct err **err)
{
	int news[2], orders[2], done = -1;

	*ret_news = -1;
	if (pipe2(news, 0) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	if (pipe2(orders, 0) < 0) {
		close(news[0]);
		close(news[1]);
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	}
	if (write(orders[1], given, strlen(given)) == (ssize_t)strlen(given))
		done = work(config, claim, news[1], orders[0]);
	close(orders[0]);
	close(orders[1]);
	close(news[1]);
	*ret_news = news[0];
	return done >= 0 ? done : strikes_node_refuse(err, "the order cannot be given");
}
