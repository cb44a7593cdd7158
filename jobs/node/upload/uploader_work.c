/* Child's side of uploader.h: round after round between a node and its workspace. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/node/claim_renewal.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/report.h"
#include "jobs/node/upload/carry_out.h"
#include "jobs/node/upload/series_upload.h"
#include "jobs/node/upload/uploader.h"

/* Interval of uploads of a growing log: its age / LOG_AGING, between the first
 * value and the second. */
#define LOG_MS      15000
#define LOG_SLOW_MS 60000
#define LOG_AGING   40
/* Pauses after a failure. */
#define RETRY_MS      5000
#define RETRY_LAST_MS 1000

/* The time for which what is left is tried at the end though the workspace refuses it, and has not
 * let the log begin. */
#define REFUSED_MS 5000

/* The time for which the last report waits for a flood in the log. */
#define HOLD_MS 5000

/* Pieces uploaded in one round, so that a flood does not delay the look at the claim. */
#define PIECES_MAX 4

#define BASE_FILE "log-base" /* in the node's folder: see find_base() */

struct rounds {
	struct carrier hands;
	const struct agent_config *config; /* that of the hands */
	const struct claim *claim;
	struct store *store; /* that of the hands */
	struct claim_renewal renewal;
	struct orders_reader orders;
	int news_fd;
	pid_t agent;
	bool others; /* the report in the workspace is another job's: nothing is uploaded */
	bool told[UPLOADER_NEWS];
	char **heard;          /* node 0: progress of each node, as the agent was told */
	struct timespec paced; /* time of the PACE_FILE that was uploaded last */
	int log_fd;            /* -1: not open yet */
	bool listed;           /* pieces of earlier uploaders are known */
	uint64_t base;         /* offset where this log begins, behind those of earlier starts */
	struct sb head;        /* bytes of the piece before `base` */
	uint64_t piece;        /* offset of the piece that may still grow */
	size_t uploaded;       /* bytes of that piece that are uploaded */
	bool more;             /* the log has more than one round could upload */
	struct series_upload series, usage;
	struct err *refusal;    /* what the workspace refused first in this round */
	struct mono refused_at; /* since when it refuses at the end; ms 0: it does not */
	struct mono held_at; /* since when the last report waits for the log; ms 0: it does not */
	struct mono begun, log_at, look_at, report_at, exchange_at, show_at; /* when each is due */
};

/* Keeps the error, and takes it over, if it is the first refusal of the round. */
static void note_refusal(struct rounds *rounds, struct err **why)
{
	if (*why && (*why)->code == EXIT_REFUSED && !rounds->refusal)
		rounds->refusal = TAKE(*why);
}

/* ---- the log ---- */

/* The agent writes the log. Returns false with errno if it cannot be opened now. */
static bool open_log(struct rounds *rounds)
{
	AUTO(auto_free) char *path = fs_join(rounds->config->dir, LOG_FILE);

	if (rounds->log_fd < 0)
		rounds->log_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return rounds->log_fd >= 0;
}

/* Reads the bytes from `piece` on, as many as a piece may have. Returns their number, -1 if they
 * cannot be read: the log is opened again before the next try. */
static ssize_t read_piece(struct rounds *rounds, char *buffer)
{
	size_t len = rounds->piece < rounds->base ? rounds->head.len : 0;

	if (len > 0)
		memcpy(buffer, rounds->head.text, len);
	while (len < LOG_PIECE_MAX) {
		ssize_t got = pread(rounds->log_fd, buffer + len, LOG_PIECE_MAX - len,
				    (off_t)(rounds->piece + len - rounds->base));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			auto_close(&rounds->log_fd);
			rounds->log_fd = -1;
			return -1;
		}
		if (got == 0)
			break;
		len += (size_t)got;
	}
	return (ssize_t)len;
}

struct last_piece {
	size_t prefix;
	uint64_t from, size;
};

static int note_piece(void *arg, const struct store_object *object, struct err **err)
{
	struct last_piece *last = arg;

	(void)err;
	last->from = strtoull(object->key + last->prefix, NULL, 10);
	last->size = object->size;
	return 0;
}

static int read_bytes(const struct rounds *rounds, const struct last_piece *last, uint64_t at,
		      size_t len, struct sb *ret)
{
	AUTO(auto_free)
	char *name = mem_format(LOG_FILE "/" LOG_OFFSET, (unsigned long long)last->from);
	AUTO(auto_free) char *key = agent_config_node_key(rounds->config, name);
	AUTO(err_freep) struct err *ignored = NULL;

	return store_read_range(rounds->store, key, at, len, ret, NULL, &ignored);
}

/* Finds where this log begins among the pieces: behind what is there, on a line of its own. The
 * offset is remembered in the node's folder, for the next uploader; a start on another machine has
 * neither that nor the log. Returns false if the pieces cannot be read. */
static bool find_base(struct rounds *rounds, const struct last_piece *last)
{
	AUTO(auto_free) char *path = fs_join(rounds->config->dir, BASE_FILE);
	AUTO(auto_free) char *number = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(64);
	AUTO(sb_release) struct sb end = SB_INIT_MAX(1);
	AUTO(err_freep) struct err *ignored = NULL;

	if (fs_read(path, 64, &text, &ignored) == 0) {
		rounds->base = strtoull(text.text, NULL, 10);
		return true;
	}
	err_freep(&ignored);
	if (last->size > 0 && read_bytes(rounds, last, last->size - 1, 1, &end) <= 0)
		return false;
	rounds->base = last->from + last->size + (end.len > 0 && end.text[0] != '\n');
	number = mem_format("%llu\n", (unsigned long long)rounds->base);
	/* The next uploader would upload all of it again without the file: no loss. */
	(void)!fs_write_atomic(path, number, strlen(number), 0600, &ignored);
	return true;
}

/* True if pieces need not be known, whose list was refused: the first start of whoever has the
 * claim finds none. */
static bool may_begin(const struct rounds *rounds, const struct err *why)
{
	return why->code == EXIT_REFUSED && rounds->hands.claimed && rounds->config->restart == 0;
}

/* Goes on with the last piece that is there: a reader of the log from far away stands in it, and
 * would never find pieces that begin elsewhere. */
static bool find_piece(struct rounds *rounds)
{
	AUTO(auto_free) char *prefix = agent_config_node_key(rounds->config, LOG_FILE "/");
	struct last_piece last = { .prefix = strlen(prefix) };
	AUTO(err_freep) struct err *why = NULL;
	bool sealed;

	if (store_list(rounds->store, prefix, note_piece, &last, &why) < 0 &&
	    !may_begin(rounds, why)) {
		note_refusal(rounds, &why);
		return false;
	}
	if (!find_base(rounds, &last))
		return false;
	sealed = last.size >= LOG_SEALED;
	rounds->piece = last.from + (sealed ? last.size : 0);
	sb_clear(&rounds->head);
	if (rounds->piece < rounds->base) {
		size_t len = (size_t)(rounds->base - rounds->piece);

		if (!sealed && last.size > 0 &&
		    read_bytes(rounds, &last, 0, len, &rounds->head) <= 0)
			return false;
		for (size_t missing = len - rounds->head.len; missing > 0; missing--)
			sb_add(&rounds->head, "\n", 1);
	}
	return rounds->listed = true;
}

static bool upload_piece(struct rounds *rounds, const char *bytes, size_t len)
{
	AUTO(auto_free)
	char *name = mem_format(LOG_FILE "/" LOG_OFFSET, (unsigned long long)rounds->piece);
	AUTO(auto_free) char *key = agent_config_node_key(rounds->config, name);
	AUTO(err_freep) struct err *why = NULL;

	if (store_put(rounds->store, key, bytes, len, &why) < 0) {
		note_refusal(rounds, &why);
		return false;
	}
	rounds->uploaded = len;
	if (len >= LOG_SEALED) {
		rounds->piece += len;
		rounds->uploaded = 0;
	}
	return true;
}

/* Returns true if all that was in the log is uploaded. */
static bool upload_log(struct rounds *rounds)
{
	AUTO(auto_free) char *buffer = NULL;

	rounds->more = false;
	if (!open_log(rounds))
		return errno == ENOENT;
	if (!rounds->listed && !find_piece(rounds))
		return false;
	buffer = mem_alloc(LOG_PIECE_MAX);
	for (int i = 0;; i++) {
		ssize_t len = read_piece(rounds, buffer);

		if (len < 0)
			return false;
		if ((size_t)len <= rounds->uploaded)
			return true;
		rounds->more = i == PIECES_MAX;
		if (rounds->more || !upload_piece(rounds, buffer, (size_t)len))
			return false;
	}
}

static int64_t log_pause(const struct rounds *rounds)
{
	int64_t aged = (clock_mono_now().ms - rounds->begun.ms) / LOG_AGING;

	return aged < LOG_MS ? LOG_MS : aged > LOG_SLOW_MS ? LOG_SLOW_MS : aged;
}

/* ---- signs in the workspace ---- */

static void say(void *arg, json_t *line)
{
	const struct rounds *rounds = arg;

	news_say(rounds->news_fd, line);
}

static void say_once(struct rounds *rounds, enum uploader_news news)
{
	if (rounds->told[news])
		return;
	rounds->told[news] = true;
	say(rounds, carry_out_line(news));
}

static bool is_there(const struct rounds *rounds, const char *name)
{
	AUTO(auto_free) char *key = agent_config_key(rounds->config, name);
	AUTO(err_freep) struct err *ignored = NULL;
	struct store_object object;

	return store_stat(rounds->store, key, &object, &ignored) > 0;
}

/* True if the flag is set for this start, which may be known only after this process began. */
static bool is_noted(const struct rounds *rounds, const char *name)
{
	return is_there(rounds, name) &&
	       node_flag_is_set(rounds->config, rounds->store, name,
				claim_restart(rounds->claim, rounds->config, rounds->store));
}

static void check_workspace(struct rounds *rounds)
{
	bool several = rounds->config->nodes > 1;

	if (!claim_holds(rounds->claim, rounds->config, rounds->store))
		say_once(rounds, UPLOADER_SUPERSEDED);
	if (!rounds->told[UPLOADER_DRAIN] && is_there(rounds, DRAIN_FILE))
		say_once(rounds, UPLOADER_DRAIN);
	if (several && rounds->told[UPLOADER_DRAIN] && is_noted(rounds, DRAINED_FILE))
		say_once(rounds, UPLOADER_DRAINED);
	if (several && !rounds->told[UPLOADER_DRAIN] && is_noted(rounds, FAILED_FILE))
		say_once(rounds, UPLOADER_PEER_FAILED);
}

/* ---- messages between nodes ---- */

/* Uploads the pace of a node with steps in its output, as often as its log. */
static void upload_step_rate(struct rounds *rounds)
{
	AUTO(auto_free) char *path = fs_join(rounds->config->dir, PACE_FILE);
	AUTO(auto_free) char *key = agent_config_node_key(rounds->config, PACE_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	struct stat st;

	if (stat(path, &st) < 0 || (st.st_mtim.tv_sec == rounds->paced.tv_sec &&
				    st.st_mtim.tv_nsec == rounds->paced.tv_nsec))
		return;
	if (fs_read(path, REPORT_MAX, &text, &ignored) == 0 &&
	    store_put(rounds->store, key, text.text, text.len, &ignored) == 0)
		rounds->paced = st.st_mtim;
}

/* Looks whether node 0 has ended, and then shows that this node lives: node 0 leaves last, and
 * waits for it (main_node_exit.h). */
static void check_main_node(struct rounds *rounds)
{
	AUTO(auto_free) char *key = agent_config_node_key(rounds->config, ALIVE_FILE);
	AUTO(auto_free)
	char *text = mem_format("{\"v\":1,\"at\":%lld}\n", (long long)clock_utc_now().ms);
	AUTO(err_freep) struct err *ignored = NULL;

	if (!rounds->told[UPLOADER_HEAD_ENDED] && is_noted(rounds, ENDED_FILE))
		say_once(rounds, UPLOADER_HEAD_ENDED);
	if (rounds->told[UPLOADER_HEAD_ENDED] && rounds->config->object_workspace)
		(void)!store_put(rounds->store, key, text, strlen(text), &ignored);
}

/* Tells the agent what the other nodes have published since. */
static void hear_peers(struct rounds *rounds)
{
	size_t count = (size_t)rounds->config->nodes;

	if (!rounds->heard)
		rounds->heard = mem_zero(count, sizeof *rounds->heard);
	for (size_t i = 1; i < count; i++) {
		AUTO(auto_free)
		char *key = mem_format("%snode-%zu/" PROGRESS_FILE, rounds->config->prefix, i);
		AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
		AUTO(err_freep) struct err *ignored = NULL;
		json_t *line;

		if (store_get(rounds->store, key, REPORT_MAX, &text, NULL, &ignored) <= 0 ||
		    (rounds->heard[i] && strcmp(rounds->heard[i], text.text) == 0))
			continue;
		free(rounds->heard[i]);
		rounds->heard[i] = mem_copy(text.text);
		line = carry_out_line(UPLOADER_PEER);
		js_put(line, "node", json_integer((json_int_t)i));
		js_put_str(line, "text", text.text);
		say(rounds, line);
	}
}

static void exchange(struct rounds *rounds)
{
	if (rounds->config->node == 0) {
		hear_peers(rounds);
		return;
	}
	carry_out_progress(&rounds->hands);
	check_main_node(rounds);
}

/* ---- the rounds ---- */

static bool due(struct mono *at, int64_t again_ms)
{
	struct mono now = clock_mono_now();

	if (now.ms < at->ms)
		return false;
	at->ms = now.ms + again_ms;
	return true;
}

static void upload_report(struct rounds *rounds)
{
	AUTO(err_freep) struct err *why = NULL;
	int done = report_bring(rounds->config, rounds->store, &why);

	note_refusal(rounds, &why);
	rounds->hands.report_due = done < 0;
	rounds->others = done > 0;
}

static bool upload_series(struct rounds *rounds)
{
	if (!rounds->hands.claimed || !rounds->listed)
		return true;
	return series_upload(&rounds->series, rounds->config, rounds->store, rounds->base) &&
	       series_upload(&rounds->usage, rounds->config, rounds->store, 0);
}

/* The log goes first: for a reader elsewhere it is over when the last report is there. */
static bool is_report_held(struct rounds *rounds)
{
	if (!report_is_last(rounds->config))
		return false;
	if (rounds->held_at.ms == 0)
		rounds->held_at = clock_mono_now();
	log_series_end(&rounds->hands.series, rounds->config);
	(void)!(upload_log(rounds) && upload_series(rounds));
	if (!rounds->more || clock_mono_now().ms - rounds->held_at.ms >= HOLD_MS)
		return false;
	rounds->report_at.ms = 0;
	return true;
}

/* Uploads what the agent leaves in files. Returns true if all of it is uploaded. */
static bool upload(struct rounds *rounds)
{
	struct carrier *hands = &rounds->hands;
	bool log_there = true;

	err_freep(&rounds->refusal);
	if (hands->report_new)
		rounds->report_at.ms = 0;
	hands->report_new = false;
	if (hands->report_due && due(&rounds->report_at, RETRY_MS) && !is_report_held(rounds))
		upload_report(rounds);
	if (!rounds->others &&
	    (hands->last || rounds->more || due(&rounds->log_at, log_pause(rounds)))) {
		log_there = upload_log(rounds) && upload_series(rounds);
		/* The pace is in the report at the end. */
		if (log_there && !hands->last)
			upload_step_rate(rounds);
	}
	return log_there && !hands->report_due;
}

static int64_t look_ms(const struct agent_config *config)
{
	return config->object_workspace ? config->look_ms : config->heartbeat_ms;
}

static void look(struct rounds *rounds)
{
	struct carrier *hands = &rounds->hands;

	if (hands->claimed && (due(&rounds->look_at, look_ms(rounds->config)) || hands->look_due))
		check_workspace(rounds);
	if (hands->look_due)
		say(rounds, carry_out_line(UPLOADER_LOOKED));
	hands->look_due = false;
}

/* Does all that is due now. Returns true if nothing is left, and it was the last round. */
static bool go_round(struct rounds *rounds)
{
	const struct agent_config *config = rounds->config;
	struct carrier *hands = &rounds->hands;
	bool all = true;

	if (hands->claimed && !hands->last)
		claim_renewal_beat(&rounds->renewal, config);
	/* The claim is looked at before what may take long: an attempt that has lost it must
	 * end. */
	if (!hands->last)
		look(rounds);
	if (hands->last)
		log_series_end(&hands->series, config);
	else
		log_series_tick(&hands->series);
	if (config->object_workspace)
		all = upload(rounds);
	if (hands->last)
		return all;
	if (hands->claimed && claim_shown(config) &&
	    clock_mono_now().ms < rounds->begun.ms + CLAIM_SHOW_MS &&
	    due(&rounds->show_at, CLAIM_AGAIN_MS))
		(void)!claim_show(rounds->claim, config, rounds->store);
	if (hands->claimed && config->nodes > 1 &&
	    due(&rounds->exchange_at, agent_config_exchange_ms(config)))
		exchange(rounds);
	return false;
}

/* True if it is useless to go on: whoever never had the rights will hardly get them now, what the
 * agent wants to say stands in its output too, and its machine is paid for. */
static bool gives_up(struct rounds *rounds)
{
	struct mono now = clock_mono_now();

	if (!rounds->hands.last || (rounds->hands.claimed && rounds->listed) || !rounds->refusal) {
		rounds->refused_at.ms = 0;
		return false;
	}
	if (rounds->refused_at.ms == 0)
		rounds->refused_at = now;
	if (now.ms - rounds->refused_at.ms < REFUSED_MS)
		return false;
	report_complain("%s", rounds->refusal->message);
	return true;
}

/* Waits for orders, `wait_ms` at most, and carries out what is there. Returns false if the agent is
 * gone: it may have been killed, and then only what the command printed is kept. */
static bool obey(struct rounds *rounds, int64_t wait_ms)
{
	const char *bytes;
	size_t len, done;
	json_t *order;

	orders_read(&rounds->orders, wait_ms);
	while ((order = orders_take(&rounds->orders, &bytes, &len))) {
		if (getppid() == rounds->agent)
			carry_out(&rounds->hands, order, bytes, len);
		else
			carry_out_log(&rounds->hands, order, bytes, len);
		json_decref(order);
	}
	done = orders_taken(&rounds->orders);
	if (done > 0) {
		json_t *line = carry_out_line(UPLOADER_DONE);

		js_put(line, "bytes", json_integer((json_int_t)done));
		say(rounds, line);
	}
	return !rounds->orders.over;
}

static int64_t pause_of(const struct rounds *rounds)
{
	int64_t beat = rounds->config->heartbeat_ms;

	if (rounds->more)
		return 0;
	if (rounds->hands.last)
		return RETRY_LAST_MS;
	return beat < RETRY_LAST_MS ? beat : RETRY_LAST_MS;
}

static void release(struct rounds *rounds)
{
	claim_renewal_release(&rounds->renewal);
	carry_out_release(&rounds->hands);
	store_freep(&rounds->store);
	for (int i = 0; rounds->heard && i < rounds->config->nodes; i++)
		free(rounds->heard[i]);
	free(rounds->heard);
	sb_release(&rounds->head);
	sb_release(&rounds->orders.text);
	auto_close(&rounds->log_fd);
	err_freep(&rounds->refusal);
}

int uploader_work(const struct agent_config *config, const struct claim *claim, int news_fd,
		  int orders_fd)
{
	AUTO(err_freep) struct err *why = NULL;
	AUTO(release)
	struct rounds rounds = {
		.hands = { .config = *config,
			   .claim = claim,
			   .say = say,
			   .log_fd = -1,
			   .times_fd = -1,
			   .claimed = claim->taken_ms > 0,
			   .report_due = config->object_workspace }, /* perhaps left by another */
		.config = &rounds.hands.config,
		.claim = claim,
		.news_fd = news_fd,
		.agent = getppid(),
		.orders = { .fd = orders_fd, .text = SB_INIT },
		.log_fd = -1,
		.usage = { .file = USAGE_FILE },
		.head = SB_INIT_MAX(LOG_PIECE_MAX),
		.begun = clock_mono_now(),
	};
	bool done = false;

	rounds.hands.arg = &rounds;
	/* Output from before a kill of the agent is still to be written. */
	if (!config->object_workspace)
		prctl(PR_SET_PDEATHSIG, 0);
	if (store_open(config->workspace, &rounds.store, &why) < 0)
		return 1;
	rounds.hands.store = rounds.store;
	rounds.log_at.ms = rounds.begun.ms + LOG_MS;
	while (!done && !gives_up(&rounds) && obey(&rounds, pause_of(&rounds)))
		done = go_round(&rounds);
	return done ? 0 : 1;
}
