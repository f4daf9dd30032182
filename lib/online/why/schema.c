/* SPDX-License-Identifier: Apache-2.0 */
#include "online/why/schema.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct to_field figure[] = {
  { "subject", TO_VALUE_TEXT, .about = "What is explained." },
  { "from_ns", TO_VALUE_TIME, .about = "Its begin." },
  { "until_ns", TO_VALUE_TIME, .about = "Its end; the trace's if it is open." },
  { "total_ns", TO_VALUE_NS, .about = "How long it took." },
  { "behind_ns", TO_VALUE_NS, .about = "Part of total_ns: behind other goroutines." },
  { "open", TO_VALUE_FLAG, .about = "It has not ended when the trace ends." },
  { "cut", TO_VALUE_FLAG,
    .about = "The path has too many pieces: its earliest part is left out as unknown." },
  { "path_rows_total", TO_VALUE_COUNT,
    .about = "Pieces of the path; the table has at most --top of them." },
  { "runnable_mean", TO_VALUE_COUNT,
    .about = "Average number of goroutines that were runnable while the subject waited for a P, "
             "the subject included." },
  { "procs", TO_VALUE_COUNT,
    .about = "Ps, by the largest number that ran a goroutine meanwhile; 0: unknown." },
  { "related_cut", TO_VALUE_FLAG,
    .about = "There are more related goroutines than the table can list." },
};
static const struct to_field part[] = {
  { "part", TO_VALUE_TEXT,
    .about = "cpu, runnable, syscall, gc_assist, stop_the_world, waiting, unknown; behind: time of "
             "others." },
  { "reason", TO_VALUE_TEXT, .about = "What a wait is for." },
  { "total_ns", TO_VALUE_NS, .about = "Its part of the interval." },
};
static const struct to_field behind[] = {
  { "goroutine", TO_VALUE_ID, .about = "0: unknown." },
  { "entry", TO_VALUE_TEXT, .about = "The function that it began with." },
  { "total_ns", TO_VALUE_NS, .about = "Time of the path on it." },
  { "cpu_ns", TO_VALUE_NS, .about = "Part of total_ns: running." },
  { "runnable_ns", TO_VALUE_NS, .about = "Part of total_ns: waiting for a P." },
  { "syscall_ns", TO_VALUE_NS, .about = "Part of total_ns: in system calls." },
  { "gc_assist_ns", TO_VALUE_NS, .about = "Part of total_ns: in mark assists." },
  { "stop_the_world_ns", TO_VALUE_NS, .about = "Part of total_ns: while the world was stopped." },
  { "waiting_ns", TO_VALUE_NS, .about = "Part of total_ns: waits that are not followed." },
  { "unknown_ns", TO_VALUE_NS, .about = "Part of total_ns: unknown." },
};
static const struct to_field piece[] = {
  { "from_ns", TO_VALUE_TIME, .about = "Its begin: where the piece before it ends." },
  { "until_ns", TO_VALUE_TIME, .about = "Its end." },
  { "total_ns", TO_VALUE_NS, .about = "Its length." },
  { "depth", TO_VALUE_COUNT,
    .about = "Waits that were followed to get here; 0: the subject itself." },
  { "goroutine", TO_VALUE_ID, .about = "0: unknown." },
  { "life", TO_VALUE_ID,
    .about = "The goroutine's number in `tracectl query`: ids may be reused, lives are unique." },
  { "entry", TO_VALUE_TEXT, .about = "The function that it began with." },
  { "state", TO_VALUE_TEXT, .about = "What the goroutine did." },
  { "reason", TO_VALUE_TEXT, .about = "What a wait is for." },
  { "function", TO_VALUE_TEXT, .about = "The program's innermost function." },
  { "file", TO_VALUE_TEXT, .about = "Where that function is." },
  { "line", TO_VALUE_COUNT, .about = "Line in that file; 0: unknown." },
  { "stop_the_world_ns", TO_VALUE_NS, .about = "Part of total_ns: while the world was stopped." },
  { "gc_assist_ns", TO_VALUE_NS, .about = "Part of total_ns: in mark assists." },
  { "end", TO_VALUE_TEXT, .about = "Why the wait was not followed." },
};
static const struct to_field related[] = {
  { "goroutine", TO_VALUE_ID, .about = "Its id." },
  { "entry", TO_VALUE_TEXT, .about = "The function that it began with." },
  { "life", TO_VALUE_ID, .about = "As in path." },
  { "depth", TO_VALUE_COUNT,
    .about = "1: it ended waits of the subject. 2: of goroutines of depth 1." },
  { "wakes", TO_VALUE_COUNT, .about = "Waits that it ended." },
  { "waited_ns", TO_VALUE_NS, .about = "Their time in the interval." },
};

static const struct to_table_schema table[] = {
  { .name = "parts",
    .about = "What the time was spent on",
    .order_about = "the subject's own time first",
    .keys = 2,
    .columns = COUNT(part),
    .column = part },
  { .name = "behind",
    .about = "Goroutines that it waited for",
    .order_about = "most time first",
    .keys = 1,
    .columns = COUNT(behind),
    .column = behind,
    .is_list = true },
  { .name = "path",
    .about = "The critical path",
    .order_about = "in order of time",
    .columns = COUNT(piece),
    .column = piece,
    .is_list = true },
  { .name = "related",
    .about = "Goroutines that ended its waits, and their waits",
    .order_about = "by depth, the most waited time first",
    .keys = 1,
    .columns = COUNT(related),
    .column = related,
    .is_list = true },
};

const struct to_schema to_why_schema = {
  .figures = COUNT(figure), .tables = COUNT(table), .figure = figure, .table = table
};
