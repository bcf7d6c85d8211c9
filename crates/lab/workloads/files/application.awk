# SPDX-License-Identifier: GPL-2.0-only
# Writes an application to build: 20 .c and 4 .h files and a Makefile, about 7,800 lines
# and 200 KB, always the same. Eighteen modules keep records in a table, sort, search,
# hash and print them, by turns; the program prints one number that depends on all.

# A fixed sequence of numbers below n.
function pick(n) {
	seed = (seed * 1103 + 12345) % 1048573
	return int(seed / 7) % n
}

function emit(line) {
	print line > file
}

function noun() {
	return nouns[pick(count) + 1]
}

function begin(name) {
	if (file != "")
		close(file)
	file = name
}

function headers(  n, i) {
	begin("types.h")
	emit("#ifndef TYPES_H\n#define TYPES_H\n\n#include <stddef.h>\n#include <stdint.h>\n")
	emit("#define NAME_SIZE 24\n#define TABLE_SIZE 64\n")
	emit("struct record {\n\tstruct record *next;\n\tuint32_t key;\n\tuint32_t value;\n\tuint32_t flags;\n\tchar name[NAME_SIZE];\n};\n")
	emit("struct table {\n\tstruct record *bucket[TABLE_SIZE];\n\tsize_t used;\n};\n")
	emit("enum state {")
	for (i = 1; i <= count; i++)
		emit("\tSTATE_" toupper(nouns[i]) ",")
	emit("\tSTATES\n};\n\n#endif")

	begin("table.h")
	emit("#ifndef TABLE_H\n#define TABLE_H\n\n#include \"types.h\"\n")
	emit("/* Finds a record, or makes one. */\nstruct record *table_get(struct table *t, uint32_t key);")
	emit("void table_clear(struct table *t);\n\n#endif")

	begin("mix.h")
	emit("#ifndef MIX_H\n#define MIX_H\n\n#include <stdint.h>\n")
	emit("static inline uint32_t mix(uint32_t a, uint32_t b)\n{\n\ta ^= b + 0x9e3779b9u + (a << 6) + (a >> 2);\n\treturn a * 2654435761u;\n}\n")
	emit("uint32_t mix_text(uint32_t a, const char *s);\n\n#endif")

	begin("modules.h")
	emit("#ifndef MODULES_H\n#define MODULES_H\n\n#include <stdint.h>\n")
	for (n = 1; n <= modules; n++)
		emit("uint32_t " name[n] "_run(uint32_t seed);")
	emit("\n#endif")
}

function table() {
	begin("table.c")
	emit("#include <ctype.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"mix.h\"\n#include \"table.h\"\n")
	emit("uint32_t mix_text(uint32_t a, const char *s)\n{\n\tfor (; *s; s++)\n\t\ta = mix(a, (uint32_t)toupper((unsigned char)*s));\n\treturn a;\n}\n")
	emit("struct record *table_get(struct table *t, uint32_t key)\n{\n\tstruct record **at = &t->bucket[key % TABLE_SIZE];\n\tstruct record *r;\n")
	emit("\tfor (r = *at; r; r = r->next)\n\t\tif (r->key == key)\n\t\t\treturn r;")
	emit("\tr = calloc(1, sizeof(*r));\n\tif (!r)\n\t\tabort();")
	emit("\tr->key = key;\n\tr->next = *at;\n\t*at = r;\n\tt->used++;\n\treturn r;\n}\n")
	emit("void table_clear(struct table *t)\n{\n\tfor (int i = 0; i < TABLE_SIZE; i++) {\n\t\twhile (t->bucket[i]) {\n\t\t\tstruct record *r = t->bucket[i];\n")
	emit("\t\t\tt->bucket[i] = r->next;\n\t\t\tfree(r);\n\t\t}\n\t}\n\tt->used = 0;\n}")
}

# Functions of a module: each takes the table and a number and returns another.

function sorting(f,  k) {
	k = 8 + pick(24)
	emit("static int " f "_order(const void *a, const void *b)\n{")
	emit("\tconst struct record *x = a, *y = b;\n")
	emit("\tif (x->value != y->value)\n\t\treturn x->value < y->value ? -1 : 1;")
	emit("\treturn strcmp(x->name, y->name);\n}\n")
	emit("static uint32_t " f "(struct table *t, uint32_t n)\n{")
	emit("\tstruct record all[" k "];\n\tuint32_t result = n;\n")
	emit("\tmemset(all, 0, sizeof(all));")
	emit("\tfor (uint32_t i = 0; i < " k "; i++) {")
	emit("\t\tall[i].value = mix(n, i) % " (100 + pick(900)) ";")
	emit("\t\tsnprintf(all[i].name, NAME_SIZE, \"" noun() "-%u\", (unsigned int)(i ^ n) % " (10 + pick(90)) ");\n\t}")
	emit("\tqsort(all, " k ", sizeof(all[0]), " f "_order);")
	emit("\tfor (uint32_t i = 0; i < " k "; i++)\n\t\tresult = mix(result, mix_text(all[i].value, all[i].name));")
	emit("\ttable_get(t, result % " (50 + pick(200)) ")->value += result;\n\treturn result;\n}\n")
}

function choosing(f,  i, k) {
	emit("static uint32_t " f "(struct table *t, uint32_t n)\n{")
	emit("\tstruct record *r = table_get(t, n % " (20 + pick(100)) ");\n")
	emit("\tswitch ((enum state)(n % STATES)) {")
	for (i = 1; i <= count; i++) {
		emit("\tcase STATE_" toupper(nouns[i]) ":")
		k = pick(4)
		if (k == 0)
			emit("\t\tr->value += " pick(1000) ";\n\t\tr->flags |= " 2 ^ pick(16) "u;")
		else if (k == 1)
			emit("\t\tif (r->flags & " 2 ^ pick(16) "u)\n\t\t\treturn mix(n, " pick(1000) ");\n\t\tr->value ^= n;")
		else if (k == 2)
			emit("\t\tstrncpy(r->name, \"" noun() "\", NAME_SIZE - 1);\n\t\tr->value = mix_text(n, r->name);")
		else
			emit("\t\tfor (uint32_t i = 0; i < " (2 + pick(6)) "; i++)\n\t\t\tr->value = mix(r->value, i + " pick(100) ");")
		emit("\t\tbreak;")
	}
	emit("\tdefault:\n\t\tbreak;\n\t}\n\treturn mix(r->value, r->flags);\n}\n")
}

function scanning(f,  w) {
	w = noun()
	emit("static uint32_t " f "(struct table *t, uint32_t n)\n{")
	emit("\tstatic const char wanted[] = \"" w "\";\n\tchar text[128];\n\tuint32_t found = 0;\n")
	emit("\tsnprintf(text, sizeof(text), \"" noun() " %08x of %zu, " noun() " %u\", (unsigned int)n,\n\t\t t->used, (unsigned int)n % " (100 + pick(1000)) ");")
	emit("\tfor (const char *s = text; *s; s++) {\n\t\tif (isdigit((unsigned char)*s))\n\t\t\tfound += (uint32_t)(*s - '0') * " (1 + pick(9)) ";")
	emit("\t\telse if (strchr(wanted, *s))\n\t\t\tfound = mix(found, " (1 + pick(99)) ");\n\t}")
	emit("\tif (found % " (3 + pick(5)) " == 0)\n\t\ttable_get(t, found % " (30 + pick(60)) ")->flags ^= found;\n\treturn mix(n, found);\n}\n")
}

function filling(f,  k) {
	k = 4 + pick(8)
	emit("static uint32_t " f "(struct table *t, uint32_t n)\n{")
	emit("\tuint32_t grid[" k "][" k "];\n\tuint32_t sum = n;\n")
	emit("\tfor (uint32_t y = 0; y < " k "; y++)\n\t\tfor (uint32_t x = 0; x < " k "; x++)\n\t\t\tgrid[y][x] = mix(n + y, x * " (1 + pick(50)) ");")
	emit("\tfor (uint32_t y = 1; y + 1 < " k "; y++) {\n\t\tfor (uint32_t x = 1; x + 1 < " k "; x++) {")
	emit("\t\t\tuint32_t around = grid[y - 1][x] + grid[y + 1][x] + grid[y][x - 1] + grid[y][x + 1];\n")
	emit("\t\t\tif (around > grid[y][x])\n\t\t\t\tsum += around / " (2 + pick(7)) ";\n\t\t\telse\n\t\t\t\tsum ^= grid[y][x] >> " pick(16) ";\n\t\t}\n\t}")
	emit("\ttable_get(t, sum % " (40 + pick(80)) ")->value += sum;\n\treturn sum;\n}\n")
}

function constants(module,  i) {
	emit("static const struct {\n\tconst char *name;\n\tuint32_t weight;\n\tenum state state;\n} " module "_constants[] = {")
	for (i = 0; i < 70; i++)
		emit("\t{ \"" noun() "\", " pick(1000) ", STATE_" toupper(noun()) " },")
	emit("};\n")
	emit("static uint32_t " module "_constant(uint32_t n)\n{")
	emit("\tn %= sizeof(" module "_constants) / sizeof(" module "_constants[0]);")
	emit("\treturn mix_text(" module "_constants[n].weight + " module "_constants[n].state, " module "_constants[n].name);\n}\n")
}

function module(m,  f, i, functions) {
	functions = 9
	begin(name[m] ".c")
	emit("/* The module for the " name[m] ". */\n#include <ctype.h>\n#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/stat.h>\n#include <unistd.h>\n")
	emit("#include \"mix.h\"\n#include \"modules.h\"\n#include \"table.h\"\n#include \"types.h\"\n")
	constants(name[m])
	for (i = 1; i <= functions; i++) {
		f = name[m] "_" noun() "_" i
		step[i] = f
		emit("/*\n * " f ": works on the " noun() " of a " noun() " that the table holds,\n * and returns a number for the next step.\n */")
		if (i % 9 == 0)
			choosing(f)
		else if (i % 3 == 0)
			sorting(f)
		else if (i % 3 == 1)
			scanning(f)
		else
			filling(f)
	}
	emit("static uint32_t (*const steps[])(struct table *, uint32_t) = {")
	for (i = 1; i <= functions; i++)
		emit("\t" step[i] ",")
	emit("};\n")
	emit("uint32_t " name[m] "_run(uint32_t seed)\n{\n\tstruct table table = { 0 };\n")
	emit("\tfor (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)\n\t\tseed = mix(" name[m] "_constant(seed), steps[i](&table, seed));")
	emit("\tseed = mix(seed, (uint32_t)table.used);\n\ttable_clear(&table);\n\treturn seed;\n}")
}

function program(  m) {
	begin("main.c")
	emit("#include <stdio.h>\n#include \"mix.h\"\n#include \"modules.h\"\n")
	emit("static uint32_t (*const modules[])(uint32_t) = {")
	for (m = 1; m <= modules; m++)
		emit("\t" name[m] "_run,")
	emit("};\n\nint main(void)\n{\n\tuint32_t result = 1;\n")
	emit("\tfor (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)\n\t\tresult = mix(result, modules[i](result));")
	emit("\tprintf(\"%u\\n\", (unsigned int)result);\n\treturn 0;\n}")

	begin("Makefile")
	emit("CFLAGS = -O1 -std=c11\nOBJECTS = main.o table.o")
	for (m = 1; m <= modules; m++)
		emit("OBJECTS += " name[m] ".o")
	emit("\napplication: $(OBJECTS)\n\t$(CC) $(CFLAGS) -o $@ $(OBJECTS)\n")
	emit("$(OBJECTS): types.h table.h mix.h modules.h\n\nclean:\n\trm -f application $(OBJECTS)")
	close(file)
}

BEGIN {
	modules = 18
	seed = 42
	count = split("anchor barrel cable deck engine flag galley harbour island jetty keel lantern mast net oar port quay rope sail tide", nouns)
	for (m = 1; m <= modules; m++)
		name[m] = nouns[m]
	headers()
	table()
	for (m = 1; m <= modules; m++)
		module(m)
	program()
}
