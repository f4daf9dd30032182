/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/metrics/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/http/metrics/peers.h" /* tc_metrics_head() */
#include "wire/spec.h"

enum { VERSIONS_END = 100, LIST_BYTES = 200 };
static const uint64_t SECOND_NS = 1000000000;

struct tc_process {
  uint64_t cpu_ns, start_wall_ns, resident_bytes, virtual_bytes, open_fds, max_fds;
};

/* Returns the time when the machine started, in Unix time; 0: unknown. */
static uint64_t boot_s(void) {
  unsigned long long at = 0;
  char line[256];
  FILE *f = fopen("/proc/stat", "re");

  if (f == NULL) return 0;
  while (fgets(line, sizeof line, f) != NULL && sscanf(line, "btime %llu", &at) != 1) {
  }
  fclose(f);
  return at;
}

/* proc_pid_stat(5): the program's name, in brackets, may have any characters; field 3 follows the last bracket. */
static void read_stat(struct tc_process *p) {
  unsigned long long started_ticks, bytes;
  char text[1024];
  long pages;
  FILE *f = fopen("/proc/self/stat", "re");

  if (f == NULL) return;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = '\0';
  const char *rest = strrchr(text, ')');
  uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK), boot = boot_s();
  if (rest == NULL || boot == 0 ||
      sscanf(rest + 1,
             " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu "
             "%llu %ld",
             &started_ticks, &bytes, &pages) != 3)
    return;
  p->start_wall_ns = boot * SECOND_NS + started_ticks * (SECOND_NS / ticks);
  p->virtual_bytes = bytes;
  p->resident_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void count_descriptors(struct tc_process *p) {
  DIR *dir = opendir("/proc/self/fd");

  if (dir == NULL) return;
  for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
    p->open_fds += *entry->d_name != '.';
  closedir(dir);
  p->open_fds--; /* the descriptor of dir */
}

static uint64_t ns_of(struct timeval t) {
  return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_usec * 1000;
}

static void read_process(struct tc_process *p) {
  struct rlimit limit = { 0 };
  struct rusage usage = { 0 };

  getrusage(RUSAGE_SELF, &usage);
  p->cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) p->max_fds = limit.rlim_cur;
  read_stat(p);
  count_descriptors(p);
}

enum type { GAUGE, SECONDS_GAUGE, SECONDS_COUNTER };

static void write_one(struct tb_buf *out, enum type type, const char *name, const char *text,
                      uint64_t value) {
  if (value == 0) return; /* unknown: none of these can be zero */
  tc_metrics_head(out, name, type == SECONDS_COUNTER ? "counter" : "gauge", text);
  if (type == GAUGE)
    tb_buf_printf(out, "%s %" PRIu64 "\n", name, value);
  else
    tb_buf_printf(out, "%s %.9f\n", name, (double)value / 1e9);
}

static void write_build(struct tb_buf *out, const char *version) {
  char formats[LIST_BYTES] = "";
  size_t n = 0;

  for (unsigned v = 0; v < VERSIONS_END && n < LIST_BYTES; v++)
    if (tw_version_known(v))
      n += (size_t)snprintf(formats + n, LIST_BYTES - n, "%s1.%u", n > 0 ? " " : "", v);
  tc_metrics_head(out, "tracecollect_build_info", "gauge",
                  "Always 1; the collector's version, and the Go trace formats that it reads.");
  tb_buf_printf(out, "tracecollect_build_info{version=\"%s\",go_formats=\"%s\"} 1\n", version,
                formats);
}

tb_rc tc_metrics_process(struct tb_buf *out, const char *version) {
  struct tc_process process = { 0 };

  read_process(&process);
  write_build(out, version);
#define TC_PROCESS_METRIC(type, name, field, text) write_one(out, type, #name, text, process.field);
#include "config/metrics_process.def"
#undef TC_PROCESS_METRIC
  return out->rc;
}
