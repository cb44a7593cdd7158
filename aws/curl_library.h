/*
 * libcurl, loaded when the first HTTP client is made: with it come two dozen libraries,
 * and starting with them takes longer than most commands do.
 *
 * The functions that http.c uses: libcurl.easy_init is curl_easy_init, with its type.
 */
#ifndef STK_AWS_CURL_LIBRARY_H
#define STK_AWS_CURL_LIBRARY_H

/* multi_socket_all is called old-fashioned, and yet nothing else brings a multi handle
 * that was driven by waiting back to one that is driven by events. */
#define CURL_DISABLE_DEPRECATION
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
	FUNCTION(multi_socket_action)                                                              \
	FUNCTION(multi_socket_all)                                                                 \
	FUNCTION(slist_append)                                                                     \
	FUNCTION(slist_free_all)

struct curl_library {
#define FUNCTION(name) __typeof__(&curl_##name) name;
	LIBCURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Empty until it is loaded. */
extern struct curl_library libcurl;

/* Load it and let it set itself up; once is enough, and any thread may ask.
 * EXIT_REFUSED: it is not on this machine. */
int curl_library_load(struct err **err);
/* Where it was loaded from: in an agent, the folder of all that the agent has brought.
 * NULL: it is not loaded. Yours to free. */
char *curl_library_folder(void);

#endif
