# SPDX-License-Identifier: GPL-2.0-or-later
# Writes an application to build, always the same: 20 .c and 4 .h files and a Makefile,
# about 7,800 lines and 200 KB, of the parts in application.txt. Eighteen modules keep
# records in a table, sort, search and compute by turns; the program prints one number
# that depends on all of them.
#
# In a part stand @m for the module, @f for the function, @N for this turn's noun, @w and
# @W for one by chance, @k for the part's own number and @{10+90} for one from 10 to 99.
# A line after `@nouns` or `@modules` is repeated for each.

# Chance: a fixed sequence of numbers below n.
function pick(n) {
	seed = (seed * 1103 + 12345) % 1048573
	return int(seed / 7) % n
}

function chosen(mark,  range) {
	if (mark == "@m")
		return module
	if (mark == "@f")
		return function_name
	if (mark == "@N")
		return toupper(turn)
	if (mark == "@w")
		return noun[pick(nouns) + 1]
	if (mark == "@W")
		return toupper(noun[pick(nouns) + 1])
	if (mark == "@k")
		return number
	split(substr(mark, 3, length(mark) - 3), range, "+")
	return range[1] + pick(range[2])
}

function emit(line,  done) {
	while (match(line, /@([mfNwWk]|[{][0-9]+[+][0-9]+[}])/)) {
		done = done substr(line, 1, RSTART - 1) chosen(substr(line, RSTART, RLENGTH))
		line = substr(line, RSTART + RLENGTH)
	}
	print done line > file
}

function emit_part(name,  i, n, line) {
	if (name in least)
		number = least[name] + pick(more[name])
	for (i = 1; i <= lines[name]; i++) {
		line = text[name, i]
		if (sub(/^@nouns /, "", line)) {
			for (n = 1; n <= nouns; n++) {
				turn = noun[n]
				emit(line)
			}
		} else if (sub(/^@modules /, "", line)) {
			for (n = 1; n <= modules; n++) {
				module = noun[n]
				emit(line)
			}
		} else {
			emit(line)
		}
	}
}

function begin(name) {
	if (file != "")
		close(file)
	file = name
}

function emit_choosing(  n) {
	emit_part("choosing")
	for (n = 1; n <= nouns; n++) {
		turn = noun[n]
		emit_part("choice")
		emit_part("choice" pick(4))
	}
	emit_part("chosen")
}

function emit_module(  i, name) {
	begin(module ".c")
	emit_part("head")
	for (i = 1; i <= constants; i++)
		emit_part("constant")
	emit_part("constants")
	for (i = 1; i <= functions; i++) {
		function_name = name[i] = module "_" noun[pick(nouns) + 1] "_" i
		emit_part("comment")
		if (i % 9 == 0)
			emit_choosing()
		else
			emit_part(i % 3 == 0 ? "sorting" : i % 3 == 1 ? "scanning" : "filling")
	}
	emit_part("steps")
	for (i = 1; i <= functions; i++) {
		function_name = name[i]
		emit_part("step")
	}
	emit_part("run")
}

/^=== / {
	part = $2
	if (NF == 4) {
		least[part] = $3
		more[part] = $4
	}
	next
}

{
	text[part, ++lines[part]] = $0
}

END {
	seed = 42
	modules = 18
	functions = 9
	constants = 70
	nouns = split("anchor barrel cable deck engine flag galley harbour island jetty keel " \
		"lantern mast net oar port quay rope sail tide", noun)
	split("types.h table.h mix.h modules.h table.c main.c Makefile", whole)
	for (m = 1; m in whole; m++) {
		begin(whole[m])
		emit_part(whole[m])
	}
	for (m = 1; m <= modules; m++) {
		module = noun[m]
		emit_module()
	}
}
