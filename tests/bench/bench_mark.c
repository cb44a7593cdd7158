/* Marks the checkpoint at a path, as the agent does: its files are synced before the mark is
 * written. */
#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/mem.h"
#include "jobs/checkpoint/checkpoint.h"
#include "tests/bench/bench.h"

int main(int argc, char **argv)
{
	static const struct ckpt_owner owner = { "bench", "nonce", 1, NULL, 0 };
	struct ckpt ckpt = { 0 };
	struct err *err = NULL;
	AUTO(auto_free) char *folder = argc == 2 ? mem_copy(argv[1]) : NULL;
	char *slash = folder ? strrchr(folder, '/') : NULL;
	double begin = wall_seconds();

	if (!slash)
		give_up("usage: bench_mark /ROOT/CHECKPOINT", NULL);
	*slash = '\0';
	if (checkpoint_prove(argv[1], checkpoint_kind_find("files"), &ckpt, &err) < 0)
		give_up("checkpoint_prove", err);
	if (checkpoint_mark(&(struct ckpt_root){ .path = folder, .attempt = 1 }, &ckpt, &owner,
			    clock_utc_now(), &err) != 1)
		give_up("checkpoint_mark", err);
	printf("{\"seconds\": %.6f, \"files\": %llu, \"bytes\": %llu}\n", wall_seconds() - begin,
	       (unsigned long long)ckpt.files, (unsigned long long)ckpt.bytes);
	checkpoint_release(&ckpt);
	return 0;
}
