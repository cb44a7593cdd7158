/* The peer and floor of reading a large spec: libyaml alone, the whole document. */
#include <yaml.h>

#include "tests/bench/bench.h"

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "re") : NULL;
	yaml_parser_t parser;
	yaml_document_t document;

	if (!file || !yaml_parser_initialize(&parser))
		give_up("usage: bench_yaml FILE", NULL);
	yaml_parser_set_input_file(&parser, file);
	if (!yaml_parser_load(&parser, &document)) {
		fprintf(stderr, "%s\n", parser.problem);
		return 1;
	}
	printf("{\"nodes\": %td}\n", document.nodes.top - document.nodes.start);
	yaml_document_delete(&document);
	yaml_parser_delete(&parser);
	return fclose(file);
}
