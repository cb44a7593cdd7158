# Read by cpack: what the package depends on is what its programs link. The agent
# brings its own libraries, and those, taken for the package's, would tie it to one
# patch level of libc.
set(folder ${CPACK_TOPLEVEL_DIRECTORY}/shlibdeps)
file(WRITE ${folder}/debian/control "Source: stoker\n\nPackage: stoker\nArchitecture: any\n")
execute_process(COMMAND dpkg-shlibdeps -O ${CPACK_STOKER_PROGRAMS}
	WORKING_DIRECTORY ${folder} OUTPUT_VARIABLE said RESULT_VARIABLE status
	OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT status EQUAL 0 OR NOT said MATCHES "^shlibs:Depends=(.+)$")
	message(FATAL_ERROR "dpkg-shlibdeps could not tell what the package depends on (${status}${said}); "
		"'apt-get install dpkg-dev' brings it")
endif()
# libgit2 is loaded where a repository is opened: it is linked by none. libcurl, which
# stoker loads too, is linked by stoker-post; neither names the certificates it needs.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
	"${CMAKE_MATCH_1}, libgit2-${CPACK_STOKER_LIBGIT2}, ca-certificates")
