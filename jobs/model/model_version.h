/*
 * "version" in an entry: what the model is, and all that it was made from. Every "file" is a key in
 * the model folder, with "size" and "sha256"; members are absent where the run had no such thing.
 *
 *   "model":     {"path": key of the file or folder, "kind": of the checkpoint ("output": a file of
 *                 the outputs), "step", "attempt", "single": true (one file), "bytes",
 *                 "files": [{"path","size","sha256"}…], sorted by path}
 *   "parent":    as in run.created's inputs: {"url","generation","digest","kind"}
 *   "data":      {"manifest": {"file","size","sha256"}, "seen": {…} (cumulative list),
 *                 "objects","new","replaced","bytes","drift"}
 *   "hold_out":  {"manifest": {…}, "objects"}
 *   "source":    {"commit","dirty","digest","patch": {…}}
 *   "image":     digest; "versions": {name: version} as agents found them
 *   "graph_keys": {phase: key}
 *   "plan_digest", "journal": {"file","size","sha256","events","sum": of the last one}
 *   "gate":      gate.judged as journalled; "evaluate": [evaluate.measured…]
 *   "outputs":   {"url", "manifest": {…}}
 *   "took":      {phase: {"seconds","machine_seconds"}} of evaluate and infer, from which the next
 *                turn forecasts its own
 *   "benchmark": true
 *
 * "drift" is what had become of the data at the promotion: {"changed","gone","first"}.
 */
#ifndef STK_MODEL_MODEL_VERSION_H
#define STK_MODEL_MODEL_VERSION_H

#include "jobs/base/text/js.h"

/* Returns NULL if `version` has the form above and all of its files are those of `run`, else what
 * is wrong, as a sentence; the caller frees it. Unknown members are fine. */
char *model_version_invalid(const json_t *version, const char *run);

/* Calls `fn` for each object of the folder that a version names: model files (`is_model`),
 * manifests and evidence. It returns 0 to go on, else that is returned. */
struct model_named {
	const char *key; /* borrowed until fn returns */
	uint64_t size;
	const char *sha256;
	bool is_model;
};
typedef int (*model_named_fn)(void *arg, const struct model_named *named, struct err **err);
int model_version_each(const json_t *version, model_named_fn fn, void *arg, struct err **err);

#endif
