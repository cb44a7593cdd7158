/* The making of a plan, shared by the files that do it: not for others. */
#ifndef STK_RUN_PLAN_PLAN_INTERNAL_H
#define STK_RUN_PLAN_PLAN_INTERNAL_H

#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/run/plan/plan.h"

/* Returns a place of the spec in the one form that stoker uses: an absolute path, relative ones
 * being beside the spec file, or a URL without a slash at its end. The caller frees it. */
char *plan_place(const struct spec *spec, const char *place);
/* The same of a place that is never remote. */
char *plan_beside_spec(const struct spec *spec, const char *place);
/* Returns a JSON array of texts as a NULL-terminated array, for auto_strv(). */
char **plan_strings(const json_t *array);

/* Adds to an error where the field was written: in the file, or on the command line. */
void plan_add_origin(const struct spec *spec, const char *field, struct err **err);
/* Pins the source of the plan: all of it that is there but `own`, stoker's own places; `bare`: none
 * of it, and nothing is read. */
int plan_pin_source(struct plan *plan, const struct spec *spec, bool bare, const char *state_dir,
		    char *const *own, struct err **err);
bool plan_is_bare(const struct plan *plan);
/* Returns "source" of a plan whose source is pinned. A new reference. */
json_t *plan_source(const struct plan *plan, const struct spec *spec);

/* Puts "image", "compile", "length", "width" and "phases" of a spec, or of a stage of it, into
 * plan->json: with a phase 1 before `last` if its graphs are compiled ahead. */
int plan_put_jobs(struct plan *plan, const struct spec *spec, const struct compile_kind *kind,
		  enum phase last, struct err **err);

/* Puts the sections of retraining, and the phases evaluate and infer, into a plan that has all
 * else. */
int plan_put_retraining(struct plan *plan, const struct spec *spec, const struct compile_kind *kind,
			struct err **err);

#endif
