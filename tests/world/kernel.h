/*
 * The kernel of the simulated world: machines, processes, time, signals and descriptors. The code
 * under test runs unchanged in it: the linker (-Wl,--wrap=NAME, from calls.def) leads each of its
 * calls that touches the outside to a function __wrap_NAME() of this folder.
 *
 * All is one thread and follows from one seed. A process is a coroutine; it gives way in calls that
 * take time or wait, and nowhere else. Virtual time goes on only in calls. A process that is killed
 * is never run again; what it had allocated is left (a schedule plays in a forked child).
 *
 * Times are nanoseconds since the world began, in int64_t, named ..._ns. Functions here that can
 * fail return a negative errno value, as a kernel does; the wrappers turn it into -1 and errno.
 *
 *   kernel.c   machines, processes, who runs next, timers of the world
 *   signal.c   kill, masks, signalfd, waitpid, pidfd
 *   file.c     descriptors and open file descriptions, pipes
 *   poll.c     poll, epoll, timerfd
 *   spawn.c    posix_spawn, helper_start (the only fork of the product), exit
 *   call.c     what each call costs and how it fails: calls.def
 *   tree.h     files: inodes, folders, locks, disks and what of them is synced
 */
#ifndef STK_TESTS_WORLD_KERNEL_H
#define STK_TESTS_WORLD_KERNEL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define WORLD_US    INT64_C(1000)
#define WORLD_MS    (1000 * WORLD_US)
#define WORLD_S     (1000 * WORLD_MS)
#define WORLD_NEVER INT64_MAX

#define PROCESS_FDS 128 /* RLIMIT_NOFILE of every process */

/* ---- chance ---- */

/* The world's own generator; nothing else in the world draws by chance. */
uint64_t chance_next(void);
int64_t chance_below(int64_t n); /* 0 ≤ result < n; n > 0 */
bool chance_one_in(int64_t n);   /* n 0: never */
void chance_seed(uint64_t seed, uint64_t schedule);
/* What is drawn between the two leaves what is drawn after them as it is without. */
#define CHANCE_STATE 4
void chance_keep(uint64_t ret[CHANCE_STATE]);
void chance_go_on(const uint64_t kept[CHANCE_STATE]);

/* ---- machines ---- */

struct tree; /* tree.h: what a machine has at "/" */

struct machine {
	char host[32];
	char boot_id[37];
	int number;        /* from 0 */
	int64_t wall_ns;   /* CLOCK_REALTIME at world time 0; a step of the clock changes it */
	int64_t booted_ns; /* CLOCK_BOOTTIME = now - booted_ns */
	int64_t slept_ns;  /* CLOCK_MONOTONIC = CLOCK_BOOTTIME - slept_ns */
	int64_t asleep_since_ns; /* suspended: none of its processes runs; WORLD_NEVER: it is not */
	bool off;                /* no power, or being started again */
	pid_t next_pid;          /* pids are reused from a small range, on purpose */
	struct tree *root;
	struct machine *next;
};

struct machine *machine_new(const char *host, int64_t wall_ns);
void machine_suspend(struct machine *machine);
void machine_wake(struct machine *machine);
/* All of its processes are gone at once; with `power_lost` also what was not synced (tree.h). It
 * comes up again with another boot id when machine_boot() is called. */
void machine_halt(struct machine *machine, bool power_lost);
void machine_boot(struct machine *machine);

/* ---- processes ---- */

enum process_state {
	PROCESS_ALIVE,  /* it runs, waits or is stopped */
	PROCESS_ZOMBIE, /* it ended and nobody has waited for it */
	PROCESS_GONE,   /* its pid is free again; the struct stays for the world's own eyes */
};

struct file; /* an open file description */

struct descriptor {
	struct file *file; /* NULL: closed */
	bool close_on_exec;
};

/* A program of the world: what an executable file stands for. It returns its exit status. argv and
 * environ are as in main(). */
typedef int (*program_fn)(int argc, char **argv);

struct process {
	struct machine *machine;
	pid_t pid, parent, group, session;
	enum process_state state;
	bool stopped;        /* SIGSTOP */
	int status;          /* as waitpid() gives it, once it has ended */
	int64_t started_ns;  /* start time in /proc/PID/stat: ticks of 10 ms since boot */
	char name[16];       /* comm */
	char *program;       /* path of its executable */
	char **argv, **envp; /* as started: /proc/PID/cmdline, environ */
	char *cwd;           /* absolute, in its machine's tree */
	mode_t umask;
	struct descriptor fds[PROCESS_FDS];
	struct rlimit limits[RLIM_NLIMITS];
	uint64_t pending, blocked, ignored; /* bit signo - 1 */
	bool subreaper;
	int death_signal; /* PR_SET_PDEATHSIG */
	uint64_t number;  /* unique in a schedule, never reused */
	uint64_t calls;   /* number of calls that it has made */
	uint64_t refused; /* of them, by a fault */
	int64_t cpu_ns;
	uint64_t caught; /* signals with a handler, as pending */
	int birth;       /* of posix_spawn(): 0: exec() is not done; negative: failed */
	struct coroutine *coroutine;
	struct process *next; /* all processes that ever were, newest first */
	void *mark;           /* for whoever watches the world (rules): untouched by the kernel */
};

/* The process that runs; NULL in the world's own code. */
extern struct process *self;
/* All processes, newest first. */
extern struct process *processes;

/* Programs by the first line of their executable file: "\177ELF world NAME", so that nobody takes
 * it for a script ("#!" lines are followed as the kernel does). Registered before the world begins.
 * The mutable statics of all boxes, `environ` and errno are saved and restored for each process, so
 * that a program finds them as main() would. */
void program_register(const char *name, program_fn fn);

struct process_start {
	struct machine *machine;
	const char *program;  /* path of an executable file in the machine's tree */
	char *const *argv;    /* copied */
	char *const *envp;    /* copied */
	const char *cwd;      /* NULL: "/" */
	const char *out_path; /* descriptors 1 and 2, opened to append; NULL: /dev/null */
};

/* Starts a process from the world itself (its parent is pid 1, which reaps all it inherits). Never
 * from a process: those use posix_spawn(). Returns NULL if the machine is off or the program is not
 * there. */
struct process *process_start(const struct process_start *start);
struct process *process_find(const struct machine *machine, pid_t pid); /* alive or zombie; NULL */
/* A signal from the world's own hand; SIGKILL, SIGSTOP and SIGCONT act at once. */
void process_signal(struct process *process, int signo);
/* Told of each signal that is sent to a living process; NULL: nobody is. */
extern void (*signal_watcher)(const struct process *to, int signo);
/* Ends the running process. */
_Noreturn void process_exit(int status);

/* ---- time, and who runs ---- */

extern int64_t now_ns;

/* Plays until nothing is left to do, until `until_ns`, or until world_stop(). */
void world_play_until(int64_t until_ns);
void world_stop(void);
/* Calls fn outside of any process at that time (at once where it has passed). */
void world_at(int64_t at_ns, void (*fn)(void *arg), void *arg);
/* Called after each effect of any process and each event of the world: the rules. */
extern void (*world_observer)(void);

/* The running process spends time; others run meanwhile. */
void world_spend(int64_t ns);
/* The running process waits until ready(arg), until a time, or until a signal that is neither
 * blocked nor ignored. Returns 0, -ETIMEDOUT or -EINTR. ready() is asked again after each
 * world_stir(). */
int world_wait(bool (*ready)(void *arg), void *arg, int64_t until_ns);
/* Something has changed that a wait may depend on. Every change of a readiness, a signal, a lock,
 * a child calls it. */
void world_stir(void);

/* Clocks of the running process's machine. */
int64_t machine_clock_ns(const struct machine *machine, clockid_t clock);

/* ---- descriptors ---- */

/* Open file descriptions. Operations never wait: they return -EAGAIN, and the wrapper waits for
 * ready() where the description is not O_NONBLOCK. */
struct file_ops {
	const char *kind; /* "pipe", "inode", … as /proc/self/fd shows it */
	ssize_t (*read)(struct file *file, void *buffer, size_t len);
	ssize_t (*write)(struct file *file, const void *bytes, size_t len);
	unsigned (*ready)(
		struct file *file);         /* POLLIN, POLLOUT, POLLHUP, POLLERR as they are now */
	void (*release)(struct file *file); /* the last descriptor is closed */
	/* What an open() of /proc/self/fd/N gives, with its own flags and offset: 0, or a negative
	 * errno. NULL: -ENXIO. */
	int (*reopen)(struct file *file, int flags, struct file **ret);
};

struct file {
	const struct file_ops *ops;
	int refs;
	int flags;      /* O_ACCMODE, O_APPEND, O_NONBLOCK */
	int64_t offset; /* of a regular file or folder */
	void *data;     /* of the kind: inode, pipe end, … */
	uint64_t number;
};

/* A new description with one reference, for fd_install(). */
struct file *file_new(const struct file_ops *ops, int flags, void *data);
/* Installs it at the lowest free descriptor from `least` on, takes the reference. -EMFILE (then the
 * reference is released). */
int fd_install(struct file *file, int least, bool close_on_exec);
/* The description behind a descriptor of the running process; NULL: EBADF. Borrowed. */
struct file *fd_file(int fd);
int fd_close(struct process *process, int fd); /* 0, -EBADF */
void file_ref(struct file *file);
void file_unref(struct file *file);

#endif
