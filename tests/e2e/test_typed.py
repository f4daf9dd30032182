# SPDX-License-Identifier: Apache-2.0
"""E18: with tracetyped.h each handle has its own type, and nothing else compiles in its place."""
import os
import pathlib
import re
import shlex
import shutil
import unittest

from harness import BUILD, SOURCE, Case

INCLUDE = SOURCE / "agent/include"

HEAD = """#include <tracetyped.h>
ta_name name;
ta_task task;
ta_fiber fiber;
ta_event event[1];
ta_experiment experiment;
ta_sequence sequence;
"""
FITS = HEAD + """
int main(void) {
  name = ta_name_of("serve");
  ta_thread_attach(name);
  task = ta_task_begin(name, TA_NO_TASK);
  ta_region_begin(name, task);
  ta_log(task, name, "a text");
  ta_label(TA_NO_NAME);
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_end();
  ta_wait_begin_for(TA_WAIT_MUTEX, &sequence);
  ta_wait_end();
  fiber = ta_fiber_create(name, 0);
  ta_fiber_stack(fiber, NULL, 0);
  ta_fiber_switch(fiber);
  ta_fiber_yield(name);
  ta_fiber_block(TA_WAIT_POLL);
  ta_fiber_unblock(fiber);
  ta_fiber_switch(TA_NO_FIBER);
  ta_fiber_unblock(ta_fiber_self());
  ta_pause_begin(name);
  ta_pause_end();
  ta_region_end();
  ta_task_end(task);
  if (ta_experiment_register("experiment Typed\\nevent Hit ctx=any a_string b_seq c_stack d_g\\n", &experiment, event, 1)) return 1;
  ta_experiment_emit(event[0], ta_of_name(name), TA_SEQUENCE(&sequence), TA_STACK_HERE, ta_of_fiber(fiber));
  ta_experiment_write(experiment, name, "x", 1);
  ta_emit_blob(event[0], name, "x", 1, ta_of_number(1), TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE);
  ta_memory_tell(TA_OBJECT_FREE, &sequence, 0, TA_NO_NAME);
  return sizeof event != 1;
}
"""
# Values that do not fit: a text, a number, another handle.
FAULTS = [
    'ta_region_begin("serve", TA_NO_TASK);', "ta_region_begin(17, task);", "ta_region_begin(name, 0);", "ta_region_begin(task, task);",
    "ta_region_begin(name, fiber);", 'ta_thread_attach("worker");', "ta_wait_begin(1);", "ta_wait_begin_for(1, &sequence);", "ta_fiber_create(fiber, 0);",
    "ta_fiber_switch(0);", "ta_fiber_switch(task);", "ta_fiber_block(fiber);", 'ta_fiber_yield("its time is up");', "ta_fiber_unblock(1);",
    "task = ta_task_begin(task, name);", "task = 1;", "name = ta_fiber_self();", "ta_task_end(fiber);", "ta_log(name, name, 0);",
    'ta_log(task, "key", "text");', 'ta_label("label");', 'ta_pause_begin("reload");',
    "ta_experiment_emit(1, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE);",
    'ta_experiment_emit(event[0], "text", TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE);',
    "ta_experiment_emit(event[0], name, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE);",
    "ta_experiment_emit(event[0], 5, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE);",
    "ta_experiment_emit(experiment, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE);",
    "ta_experiment_write(event[0], name, 0, 0);", 'ta_experiment_write(experiment, "tables", 0, 0);',
    'ta_emit_blob(event[0], "tables", 0, 0, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE, TA_NO_VALUE);',
    'ta_memory_tell(TA_OBJECT_FREE, 0, 0, "type");', "ta_memory_tell(TA_OBJECT_FREE, 0, 0, 3);",
]


class Typed(Case):
    def flags(self):
        env = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "pkgconfig")}
        return shlex.split(self.run_program("pkg-config", "--cflags", "traceagent", env=env).out)

    def compilers(self):
        yield ("cc", "-std=gnu11"), ".c"
        yield ("cc", "-std=c11", "-Wpedantic"), ".c"
        if shutil.which("c++"):
            yield ("c++", "-std=c++11"), ".cc"

    def compile(self, compiler, path, expect):
        return self.run_program(*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *self.flags(), path, expect=expect)

    def test_what_fits_compiles_and_runs(self):
        for compiler, ending in self.compilers():
            with self.subTest(compiler):
                path = pathlib.Path(self.folder / f"fits{ending}")
                path.write_text(FITS)
                self.compile(compiler, path, 0)
        self.run_program(self.program_of(self.folder / "fits.c", "fits"))

    def test_nothing_else_compiles_in_the_place_of_a_handle(self):
        for compiler, ending in self.compilers():
            path, first = self.folder / f"faults{ending}", HEAD.count("\n") + 1
            path.write_text(HEAD + "".join(f"void fails{number}(void) {{ {fault} }}\n" for number, fault in enumerate(FAULTS)))
            said = self.compile((*compiler, "-fmax-errors=0"), path, 1).err
            # A compiler says in which function it is before it says what is wrong there.
            told = dict(re.findall(r"[Ii]n function .?(?:void )?fails(\d+)\b.*?\n(.*?)(?=[^\n]*[Ii]n function .?(?:void )?fails|\Z)", said, re.S))
            for number, fault in enumerate(FAULTS):
                with self.subTest(fault, compiler=compiler):
                    self.assertIn(f"{path.name}:{first + number}:", told.get(str(number), ""))
                    self.assertRegex(told[str(number)], "error: .*(incompatible type|could not convert|cannot convert|no match for)")

    def test_every_call_that_takes_or_gives_a_handle_is_there(self):
        words = r"\b(ta_name|ta_fiber|ta_task|ta_event|ta_experiment)\b"
        typed = (INCLUDE / "tracetyped.h").read_text()
        calls = []
        for header in ("traceagent.h", "traceexperiment.h"):
            for declaration in re.findall(r"^TA_API ([^;]*);", (INCLUDE / header).read_text(), re.M):
                if re.search(words, declaration):
                    calls.append(re.search(r"(ta_\w+)\(", declaration)[1])
        self.assertGreater(len(calls), 20)
        calls.remove("ta_experiment_register_abi")  # which ta_experiment_register() is made into
        missing = [call for call in calls if not re.search(rf"^#define {call} +ta_typed_", typed, re.M)]
        self.assertEqual(missing, [])

    def test_a_raw_number_compiles_without_the_header(self):
        """Shows that the types make the other cases fail."""
        path = self.folder / "raw.c"
        path.write_text("#include <traceagent.h>\nvoid fits(void) { ta_region_begin(17, 0); }\n")
        self.compile(("cc", "-std=gnu11"), path, 0)
