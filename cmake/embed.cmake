# Writes text files as C: cmake -DOUT=… -DDIR=… -DEXT=yaml -DNAME=template_file
# -DHEADER=jobs/spec/template.h -P embed.cmake
# A row a file, as jobs/base/embedded.h has them.
file(GLOB files ${DIR}/*.${EXT})
list(SORT files)
set(code "/* Generated from ${EXT} files. */\n#include \"${HEADER}\"\n\n")
set(rows "")
set(count 0)
foreach(file ${files})
	get_filename_component(name ${file} NAME_WE)
	file(READ ${file} hex HEX)
	file(STRINGS ${file} lines LIMIT_COUNT 1)
	string(REGEX REPLACE "^# *" "" summary "${lines}")
	string(REPLACE "\"" "\\\"" summary "${summary}")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
	string(APPEND code "static const char text_${count}[] = { ${bytes} 0 };\n")
	string(APPEND rows
		"\t{ \"${name}\", \"${summary}\", text_${count}, sizeof text_${count} - 1 },\n")
	math(EXPR count "${count} + 1")
endforeach()
string(APPEND code "\nconst struct embedded_file ${NAME}s[] = {\n${rows}};\n"
	"const size_t ${NAME}_count = ${count};\n")
file(WRITE ${OUT} "${code}")
