/* Parts of the page that are files: style and program of its own, and dygraphs, embedded when
 * stoker is built; cmake/charts.cmake takes dygraphs from Debian's package. */
#ifndef STK_REPORT_PAGE_PAGE_PARTS_H
#define STK_REPORT_PAGE_PAGE_PARTS_H

#include "jobs/base/embedded.h"

extern const struct embedded_file page_styles[], page_programs[];
extern const struct embedded_file chart_styles[], chart_programs[], chart_licences[];
extern const size_t page_style_count, page_program_count;
extern const size_t chart_style_count, chart_program_count, chart_licence_count;

#endif
