/* A helper of an agent that the test is: it gives the orders, and hears the news. */
#ifndef STK_TESTS_UNIT_NODE_HELPER_BENCH_H
#define STK_TESTS_UNIT_NODE_HELPER_BENCH_H

#include "tests/unit/node/agent_run.h"

#include "jobs/node/claim.h"

#define BEAT_MS 2
/* Nothing is looked at by itself. */
#define NEVER_MS ((int64_t)3600 * 1000)

typedef int (*bench_fn)(const struct agent_config *config, const struct claim *claim, int news_fd,
			int orders_fd);

struct bench {
	struct place *place;
	struct agent_config config;
	struct claim claim;
	struct store *store;
	pid_t pid;
	int news_fd, orders_fd;
	struct sb text; /* read, and not taken yet */
};

/* Opens it without starting the helper; node 0 has the claim. Steals the order. */
static UNUSED void bench_load(struct bench *bench, struct place *place, json_t *order,
			      const char *rank)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(claim_release) struct claim claim = { 0 };
	struct agent_config head;
	enum claim_state got;

	*bench = (struct bench){ .place = place, .text = SB_INIT };
	load(&bench->config, place, order, rank);
	head = bench->config;
	head.node = 0;
	bench->store = open_store(place);
	claim_init(&bench->claim, &bench->config);
	claim_init(&claim, &head);
	must(claim_take(bench->config.node ? &claim : &bench->claim, &head, bench->store, &got,
			&err),
	     &err);
	must(claim_take(&bench->claim, &bench->config, bench->store, &got, &err), &err);
	must(fs_mkdirs(bench->config.checkpoint, &err), &err);
}

static UNUSED void bench_start(struct bench *bench, bench_fn fn)
{
	int news[2], orders[2];

	assert_int_equal(pipe2(news, O_CLOEXEC), 0);
	assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
	bench->pid = fork();
	assert_true(bench->pid >= 0);
	if (bench->pid == 0) {
		close(news[0]);
		close(orders[1]);
		_exit(fn(&bench->config, &bench->claim, news[1], orders[0]));
	}
	close(news[1]);
	close(orders[0]);
	bench->news_fd = news[0];
	bench->orders_fd = orders[1];
}

static UNUSED void tell(const struct bench *bench, const char *order)
{
	AUTO(auto_free) char *line = mem_format("{\"order\":%s}\n", order);

	assert_int_equal(write(bench->orders_fd, line, strlen(line)), strlen(line));
}

/* The next line of news, waited for; NULL at the end. A new reference. */
static UNUSED json_t *next(struct bench *bench)
{
	AUTO(err_freep) struct err *err = NULL;
	char buffer[4096];
	json_t *line = NULL;
	const char *end;

	while (!(end = bench->text.len ? memchr(bench->text.text, '\n', bench->text.len) : NULL)) {
		ssize_t len = read(bench->news_fd, buffer, sizeof buffer);

		if (len <= 0)
			return NULL;
		sb_add(&bench->text, buffer, (size_t)len);
	}
	must(js_parse(bench->text.text, (size_t)(end - bench->text.text), "news", &line, &err),
	     &err);
	sb_drop(&bench->text, (size_t)(end - bench->text.text) + 1);
	return line;
}

/* Waits for news of that kind; what comes before is of no interest. A new reference. */
static UNUSED json_t *hear(struct bench *bench, const char *kind)
{
	json_t *line;

	while ((line = next(bench))) {
		if (js_is(line, "news", kind))
			return line;
		json_decref(line);
	}
	fail_msg("no news of '%s'", kind);
	return NULL;
}

/* All that is said until the end: the kinds, each with a blank behind it, but "saving", "saved" and
 * "copying", whose number depends on the moment. */
static UNUSED char *rest(struct bench *bench)
{
	struct sb kinds = SB_INIT;
	json_t *line;

	while ((line = next(bench))) {
		const char *kind = js_str(line, "news");

		if (strcmp(kind, "saving") != 0 && strcmp(kind, "saved") != 0 &&
		    strcmp(kind, "copying") != 0)
			sb_addf(&kinds, "%s ", kind);
		json_decref(line);
	}
	return sb_take(&kinds);
}

/* Waits for the helper's end and checks it. */
static UNUSED void bench_end(struct bench *bench, int exit_status)
{
	AUTO(auto_free) char *claim = place_path(bench->place, "runs/r1/claim/train");

	free(rest(bench)); /* else it might wait for a reader */
	assert_int_equal(end_of(bench->pid), exit_status);
	assert_int_equal(unlink(claim), 0);
	close(bench->news_fd);
	close(bench->orders_fd);
	sb_release(&bench->text);
	store_freep(&bench->store);
	claim_release(&bench->claim);
	agent_config_release(&bench->config);
}

static UNUSED bool is_there(const struct bench *bench, const char *name)
{
	AUTO(auto_free) char *path = place_path(bench->place, name);

	return fs_exists(path);
}

#endif
