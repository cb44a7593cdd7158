/*
 * Compiler kinds: everything that stoker knows about one compiler's cache and
 * its log, as one row of functions. A new kind is one row in compile_kind.c and one
 * file; nothing else in stoker depends on a particular kind.
 *
 * Rows: `none` (nothing is compiled ahead), `jax` (jax.c: JAX's persistent compilation cache) and
 * `neuron` (neuron.c: the Neuron persistent cache of torch-neuronx, filled by
 * neuron_parallel_compile).
 *
 * cache/kinds: the compilers. One row of operations per kind (jax, neuron), with the formats of its
 * logs and caches and its environment. Everything particular to one compiler is here and nowhere
 * else.
 */
#ifndef STK_CACHE_KINDS_COMPILE_KIND_H
#define STK_CACHE_KINDS_COMPILE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* Longest graph key and module name that are accepted; longer ones are noise. */
#define GRAPH_KEY_MAX  512
#define GRAPH_NAME_MAX 1024

/* A piece of foreign text: bytes, not a string. */
struct compile_kind_words {
	const char *text; /* NULL: not said */
	size_t len;
};

/* Kind of a message in a job's log, mostly about one graph. */
enum note_kind {
	NOTE_HIT,        /* key, name: found in the cache */
	NOTE_MISS,       /* key, name: not in the cache; its compilation starts now */
	NOTE_STORED,     /* key, name: about to be written; no proof that it was */
	NOTE_NOT_STORED, /* key or name or neither, why: will not be written */
	NOTE_COMPILED,   /* key or name, seconds: compiled; with a name alone, some kinds print this
			  * after a hit too */
	NOTE_READ_ERROR, /* name, why: the entry exists but could not be used */
	NOTE_WRITE_ERROR, /* name, why: writing the entry failed */
	NOTE_BYPASS,      /* why: one graph, not named, bypassed the cache */

	NOTE_EXTRACTED,      /* key: traced and written down, not compiled */
	NOTE_FAILED,         /* key or none, why: the compiler failed */
	NOTE_CACHED_FAILURE, /* key: an older failure is stored, and was replayed */
	NOTE_WAITING,   /* key, seconds so far: another process compiles it; neither hit nor miss */
	NOTE_CACHE,     /* why: the URL of the cache in use */
	NOTE_TOTALS,    /* a line of the front-end's sums: sets one of graphs, good, bad */
	NOTE_REMAINING, /* graphs: the front-end still has so many to compile */
	NOTE_NOTHING,   /* the front-end found nothing to do: no sums will come */
	NOTE_WORKER_DIED,   /* why: a worker of the front-end failed */
	NOTE_SCRIPT_FAILED, /* the script failed while its graphs were collected */
	NOTE_KINDS
};

struct graph_note {
	enum note_kind kind;
	struct compile_kind_words key, name, why; /* spans of the scanned text */
	/* Cache folder that holds the graph, for kinds where graphs of one name may lie in several
	 * (see compile_kind.placed). */
	struct compile_kind_words place;
	double seconds;            /* NOTE_COMPILED (0: not said), NOTE_WAITING; else 0 */
	int64_t stamp_ms;          /* time stamp of the message, by the clock of its node and in
				    * its time zone: only for differences; 0: none */
	int64_t graphs, good, bad; /* NOTE_TOTALS: -1 if not in this message */
	/* NOTE_COMPILED, NOTE_FAILED: from the front-end's summary, not from the compiler. */
	bool summary;
	/* NOTE_MISS: the compiler itself is called now, by the process that holds the graph's
	 * lock. */
	bool called;
	/* NOTE_FAILED: the system killed the compiler, as it does when memory is short. */
	bool killed;
	/* NOTE_READ_ERROR: the entry was malformed. inspect() can see that too, and it passes if
	 * the entry was only read while another rank wrote it. */
	bool bad_form;
	/* NOTE_NOT_STORED: the reason will be the same in every run. */
	bool lasting;
};

/* The condition of a graph in a cache. */
enum entry_state {
	ENTRY_DONE,    /* compiled, and usable as far as can be seen */
	ENTRY_EMPTY,   /* exists, with zero bytes */
	ENTRY_PARTIAL, /* exists, cut off or damaged */
	ENTRY_FAILED,  /* a stored failure of the compiler */
	ENTRY_LOCKED,  /* being compiled, or its compiler died meanwhile */
	ENTRY_TODO,    /* known to the cache, not compiled */
	ENTRY_MISSING, /* absent */
	ENTRY_STATES
};

const char *compile_kind_entry_state_name(enum entry_state state); /* "done", "empty", … */

/* Roles of one object of a listing. A graph may consist of several objects. */
enum entry_role {
	ROLE_COMPILED = 1 << 0, /* the compiled graph: the object that a manifest pins */
	ROLE_INPUT = 1 << 1,    /* the compiler's input */
	ROLE_MARKER = 1 << 2,   /* says that the compiled graph is good */
	ROLE_LOG = 1 << 3,      /* a stored failure */
	ROLE_LOCK = 1 << 4,     /* being compiled */
	ROLE_FLAGS = 1 << 5,    /* compiler flags */
	ROLE_OLD = 1 << 6,      /* in addition to another role: from a layout without markers */
};

struct entry_object {
	struct compile_kind_words graph; /* the graph's key: a span of the object's key */
	unsigned role;                   /* ROLE_COMPILED never comes with another bit */
};

/* Places to search for a spec's program, as the job will see them. Strings except program may be
 * NULL. */
struct program_place {
	const char *program;     /* command[0] */
	const char *cwd;         /* the source folder */
	const char *path;        /* PATH of the job */
	const char *home;        /* HOME of the job */
	const char *python_path; /* PYTHONPATH of the job */
};

struct kind_variable {
	const char *name;
	const char *value; /* NULL: the place of the cache */
};

typedef void (*kind_variable_fn)(void *arg, const char *name, const char *value);

/* Reads messages that span lines of one node's log. The state (`memory`) is bounded, and dropped
 * with its log. */
struct line_reader {
	void *(*memory)(void); /* state for one node; the caller frees it with forget() */
	void (*forget)(void *memory);
	/* keep() returns the state between two lines, for another process, as a new reference.
	 * restore() reads it into fresh state; false if it is damaged. */
	json_t *(*keep)(const void *memory);
	bool (*restore)(void *memory, const json_t *kept);
	/* Like compile_kind.scan, which gets the same pieces, but reads all other messages. A piece
	 * that does not begin at 0 continues the piece of the call before. */
	bool (*scan)(void *memory, const char *text, size_t len, size_t *at,
		     struct graph_note *ret);
};

struct compile_kind {
	const char *name;

	/* True if the kind has a cache; false only for `none`, whose functions report nothing. */
	bool caches;
	/* The Python package of the compiler itself; NULL for `none`. */
	const char *package;
	/* Hint on graphs that are never stored (`lasting`); may be NULL. */
	const char *lasting_hint;
	/* True if a graph lies in one of several folders of the cache, one per compiler version:
	 * logs name it `NAME`, perhaps with its place, but in listings, manifests and verdicts its
	 * key is `PLACE/NAME`. */
	bool placed;

	/* True if the compiler accepts the URL of an object store as its cache, which its own
	 * libraries read and write, locks included. If false and the cache is not a directory, the
	 * agents keep a folder on each node in sync with it. */
	bool opens_urls;

	/* Program that is put in front of the command in phase 1, NULL: none; and its option for
	 * the number of graphs that it compiles at a time. */
	const char *front_end, *workers_option;
	/* Variable that tells launchers of the front-end: "1" in phase 1, never set in training;
	 * NULL: none. */
	const char *front_variable;
	/* Value for a variable of the job that makes the compiler retry stored failures; NULL:
	 * failures are not stored. It does not change any key. */
	const char *retry_variable, *retry_words;
	/* Command that clears the locks of a whole cache; NULL: none. */
	const char *unlock_command;
	/* Hint on settings that override the cache set by `environment`; may be NULL. */
	const char *other_cache_hint;

	/* Variables that must have the same value in both phases, whatever the spec's env says: the
	 * place of the cache, and settings by which everything is stored and the messages for
	 * scan() are printed. The last row has no name; NULL: none. */
	const struct kind_variable *environment;

	/* Variables that affect this compiler, or the graphs traced for it, wherever they are set:
	 * names, or prefixes that end in '*'. NULL-terminated; NULL: none. Those of `environment`
	 * do not count. */
	const char *const *steering;
	/* Steering variables that cannot change a graph, written the same way. */
	const char *const *neutral;
	/* A variable that a prefix in `neutral` covers but that changes graphs; may be NULL. */
	const char *not_neutral;

	/* Finds the next message at or after `*at` in a piece of log, which is usually one line but
	 * may be cut or hold several merged ones; advances `*at` behind it. Any text may precede a
	 * message. Bytes in, spans out; no allocation, time linear in `len`. A message that is cut
	 * before its key ends is ignored. */
	bool (*scan)(const char *text, size_t len, size_t *at, struct graph_note *ret);

	/* Reader of messages that span lines; NULL: this kind has none. */
	const struct line_reader *lines;

	/* True if an object of the cache, by its key, is part of a graph. */
	bool (*object)(const char *key, struct entry_object *ret);

	/* State of a graph, from the roles of its objects and the size of ROLE_COMPILED. */
	enum entry_state (*state)(unsigned roles, uint64_t compiled_size);

	/* Key of the only object of a graph, if it follows from the graph's key; the caller frees
	 * it. NULL function: a graph has several objects. */
	char *(*path)(const char *graph);

	/* Prefix of the keys of all objects of a graph and of no others: its folder, with a slash
	 * at the end; the caller frees it. NULL if `graph` is not a valid key. NULL function: use
	 * path() or, if that is NULL too, a listing of everything. */
	char *(*prefix)(const char *graph);

	/* Version of the compiler that wrote an entry, by the entry's place, and in `ret_package`
	 * the compiler's name in the fingerprint; len 0: unknown. NULL function: places of this
	 * kind never tell. `path` is an object's key or a graph's with its place. */
	struct compile_kind_words (*writer)(const char *path, const char **ret_package);

	/* Reads a compiled graph to its end and judges its form: ENTRY_DONE, ENTRY_EMPTY or
	 * ENTRY_PARTIAL with a reason (static text). -1 only if it cannot be read. NULL function:
	 * the form cannot be judged. */
	int (*inspect)(int fd, enum entry_state *ret_state, const char **ret_why);

	/* The compiler's first error message, from the log that it stored with a failure; len 0:
	 * none. NULL function: no such logs. */
	struct compile_kind_words (*first_error)(const char *log, size_t len);

	/* Versions of compiler and framework, and other facts that affect the code they make, as a
	 * flat object of strings: {"jax":"0.7.2", …}. Only reads files and runs nothing, except a
	 * version manager's `python` shim. A program that does not exist gives {"program":…,
	 * "found":false}: the run will report it in its phase. Errors are failed reads only. */
	int (*fingerprint)(const struct program_place *place, json_t **ret, struct err **err);
};

/* The row of a name ("none", "jax", "neuron"); NULL if this version does not have the kind. */
const struct compile_kind *compile_kind_find(const char *name);
/* The n-th row from 0, NULL behind the last. */
const struct compile_kind *compile_kind_at(size_t n);

/* Calls `fn` for each variable of the kind's environment; `cache` is an absolute path or URL. */
void compile_kind_environment(const struct compile_kind *kind, const char *cache,
			      kind_variable_fn fn, void *arg);

/* True for a variable that can change graphs whether or not the spec sets it. Other variables
 * (PATH, a script's own) are part of a key only if the spec sets them. */
bool compile_kind_steers(const struct compile_kind *kind, const char *variable);

#endif
