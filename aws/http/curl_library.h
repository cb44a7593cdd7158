/*
 * libcurl, loaded when the first HTTP client is made: it depends on two dozen libraries, and
 * starting with them takes longer than most commands do.
 *
 * The functions that http.c uses: libcurl.easy_init is curl_easy_init, with its type.
 */
#ifndef STK_AWS_HTTP_CURL_LIBRARY_H
#define STK_AWS_HTTP_CURL_LIBRARY_H

#include <curl/curl.h>

#include "jobs/base/err.h"

#define LIBCURL_FUNCTIONS(FUNCTION)                                                                \
	FUNCTION(easy_cleanup)                                                                     \
	FUNCTION(easy_getinfo)                                                                     \
	FUNCTION(easy_init)                                                                        \
	FUNCTION(easy_reset)                                                                       \
	FUNCTION(easy_setopt)                                                                      \
	FUNCTION(easy_strerror)                                                                    \
	FUNCTION(global_init)                                                                      \
	FUNCTION(multi_add_handle)                                                                 \
	FUNCTION(multi_cleanup)                                                                    \
	FUNCTION(multi_info_read)                                                                  \
	FUNCTION(multi_init)                                                                       \
	FUNCTION(multi_perform)                                                                    \
	FUNCTION(multi_poll)                                                                       \
	FUNCTION(multi_remove_handle)                                                              \
	FUNCTION(multi_setopt)                                                                     \
	FUNCTION(slist_append)                                                                     \
	FUNCTION(slist_free_all)

struct curl_library {
#define FUNCTION(name) __typeof__(&curl_##name) name;
	LIBCURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Empty until it is loaded. */
extern struct curl_library curl_library;

/* Loads and initialises libcurl; further calls do nothing. Thread-safe. EXIT_REFUSED if it is not
 * on this machine. */
int curl_library_load(struct err **err);
/* Returns the folder that libcurl was loaded from: in an agent, the folder of all files that the
 * agent downloaded. NULL if it is not loaded. The caller frees it. */
char *curl_library_folder(void);

#endif
