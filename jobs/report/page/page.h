/*
 * The page of a report, from one JSON object:
 *
 *   "title"       text
 *   "made"        when the report was made, RFC 3339
 *   "version"     of stoker
 *   "renewed"     true: the file is written again while runs go on, and the page loads it again
 *   "verdict"     [text]: sentences about the whole
 *   "rules"       [text]: how figures were made
 *   "comparison"  {"columns": [text], "rows": [[text or null]], "best": row}; absent with one run
 *   "differences" [{"run", "words"}] from the first run
 *   "charts"      [{"title", "unit", "x", "caption", "bars": a distribution,
 *                   "lines": [{"name", "dashed", "points": [[x, y]]}],
 *                   "marks": [{"x", "words"}], "bands": [{"from", "to"}], "gaps": [x at
 *                   which every curve begins anew; absent: nowhere]}]
 *   "metrics"     [{"run", "name", "readings", "nodes", "first", "least", "least_at", "greatest",
 *                   "greatest_at", "last", "last_at", "odd", "superseded", "replayed"}]
 *   "runs"        [{"run", "status": as `status --json` prints it, "plan", "notes": [text],
 *                   "steps": {"steps", "mean", "p50", "p95"},
 *                   "lanes": [{"name", "parts": [{"kind", "from", "to"}]}], times in ms UTC,
 *                   "events": [{"at", "event", "words"}], "events_left": number not in there,
 *                   "usage": {"seconds", "findings": jobs/report/measure/usage_rules.h, absent
 *                   if too little is known}}]
 *
 *   "runs_left"   number of runs that have no section
 *
 * Members that are absent are left out of the page, or said to be not known.
 */
#ifndef STK_REPORT_PAGE_PAGE_H
#define STK_REPORT_PAGE_PAGE_H

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"

/* The beginning of every report, and of no other file. */
#define PAGE_BEGIN                                                                                 \
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                  \
	"<meta name=\"generator\" content=\"stoker report\">\n"

/* Appends the whole page. */
void page_write(const json_t *data, struct sb *ret);

#endif
