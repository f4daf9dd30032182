# SPDX-License-Identifier: Apache-2.0
"""Commands that run to their end: bash, make with a compiler, sqlite3, ffmpeg."""
import shutil

from harness import FULL
from programs.program import Command, Names

# Builtins, subshells, pipelines, a trap, a function, here documents, a background job, a program's exit code.
BASH = r"""
set -u
trap 'echo trapped $?' EXIT
count() { wc -l | tr -d ' '; }
for i in 1 2 3 4 5 6; do
  printf '%s\n' b a c | sort | head -n $((i % 3 + 1)) | count
done
while read -r word rest; do echo "<$word> $rest"; done <<TEXT
one two three
four $(echo five | tr a-z A-Z)
TEXT
sleep 0.4 & job=$!
(exit 7); echo "subshell: $?"
false || echo "false: $?"
wait $job; echo "job: $?"
echo to stderr >&2
mapfile -t lines < <(seq 3); echo "${#lines[@]}"
exit 3
"""

# make's jobs, its compilers, and their assembler and linker. In full twelve files, as the figure has it.
PARTS = range(1, 13 if FULL else 5)
SOURCES = {f"part{n}.c": f"int part{n}(int n) {{ int sum = 0; for (int i = 0; i < n; i++) sum += i * {n}; return sum; }}\n"
           for n in PARTS}
SOURCES["main.c"] = ("#include <stdio.h>\n" + "".join(f"int part{n}(int);\n" for n in PARTS) +
                     'int main(void) { printf("%d\\n", ' + " + ".join(f"part{n}({n})" for n in PARTS) + "); return 0; }\n")
SOURCES["Makefile"] = """
all: program
\t@sleep 0.3
\t@./program
program: $(patsubst %.c,%.o,$(wildcard *.c))
\t@cc -o $@ $^
%.o: %.c
\t@cc -O1 -c -o $@ $<
"""

SQL = """
pragma journal_mode = wal;
create table t(id integer primary key, word text);
insert into t(word) with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select printf('%08x', i * 7919) from n;
create index t_word on t(word);
select count(*), min(word), max(word) from t;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000) select sum(i % 17) from n;
select * from none;
"""


class Bash(Command):
    name = "bash"
    executable = "bash"
    files = {"script": BASH}
    command = ("script",)
    expects = {"bash": Names({"read", "waitpid"}, threads={"bash"}), "sleep": Names(reasons={"sleep"}, threads={"sleep"})}


class Make(Command):
    name = "make"
    executable = "make"
    files = SOURCES
    command = ("-s", "-j3")
    expects = {"make": Names({"waitpid"}, threads={"make"})}

    def missing(self):
        return super().missing() or (None if shutil.which("cc") else "there is no cc here")


class Sqlite(Command):
    name = "sqlite3"
    executable = "sqlite3"
    files = {"script.sql": SQL}
    command = ("some.db", ".read script.sql")
    variables = {"TRACEAGENT_DELAY_MS": "0"}
    expects = {"sqlite3": Names({"pread64", "pwrite64", "fdatasync"}, threads={"sqlite3"})}


class Ffmpeg(Command):
    name = "ffmpeg"
    executable = "ffmpeg"
    command = ("-nostdin", "-v", "error", "-threads", "4", "-f", "lavfi", "-i", "testsrc=size=640x480:rate=25:duration=16", "-c:v", "mpeg4",
               "-bitexact", "-f", "framemd5", "-")
    expects = {"ffmpeg": Names({"pthread_cond_wait"}, {"sync (condition)"}, {"ffmpeg"})}


PROGRAMS = (Bash(), Make(), Sqlite(), Ffmpeg())
