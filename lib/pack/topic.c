/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/topic.h"

#include <assert.h>
#include <string.h>

static const char *const slot_names[TC_FEED_SLOTS] = {
  [TC_FEED_GENERATION] = "generation",
  [TC_FEED_ALERT] = "alert",
#define TC_FEED_EVENT(ID, name, about) [TC_FEED_EVENTS + TC_FEED_EVENT_##ID] = "event/" name,
#include "pack/feed_events.def"
#undef TC_FEED_EVENT
#define TO_ANALYSIS(ID, name, about) [TC_FEED_REPORTS + TO_ANALYSIS_##ID] = "report/" #name,
#include "online/analysis/analyses.def"
#undef TO_ANALYSIS
};

static const char *const event_names[TC_FEED_EVENT_KINDS] = {
#define TC_FEED_EVENT(ID, name, about) [TC_FEED_EVENT_##ID] = name,
#include "pack/feed_events.def"
#undef TC_FEED_EVENT
};

const char *tc_feed_slot_name(enum tc_feed_slot slot) {
  return slot_names[slot];
}

static bool is_plain(unsigned char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == ':' || c == '-';
}

static size_t add_level(char *out, const char *name) {
  static const char digits[] = "0123456789ABCDEF";
  size_t n = 0;

  for (size_t i = 0; i < TC_NAME_MAX && name[i] != '\0'; i++) {
    unsigned char c = (unsigned char)name[i];

    if (is_plain(c)) {
      out[n++] = (char)c;
    } else {
      out[n++] = '%';
      out[n++] = digits[c >> 4];
      out[n++] = digits[c & 15];
    }
  }
  out[n++] = '/';
  return n;
}

size_t tc_feed_topic(char out[TC_FEED_TOPIC_BYTES], const char *service, const char *instance,
                     enum tc_feed_slot slot) {
  size_t n = add_level(out, service);

  n += add_level(out + n, instance);
  size_t len = strlen(slot_names[slot]);
  assert(n + len < TC_FEED_TOPIC_BYTES);
  memcpy(out + n, slot_names[slot], len + 1);
  return n + len;
}

static const char *event_name(unsigned i) {
  return event_names[i];
}

static const char *window_name(unsigned i) {
  return to_window_name((enum to_window)i);
}

static tb_rc read_list(const char *list, const char *key, const char *(*name)(unsigned i),
                       unsigned count, struct tb_diag *diag, unsigned *out_bits) {
  unsigned bits = 0;

  while (*list != '\0') {
    size_t len = strcspn(list, ",");
    unsigned i = 0;

    while (i < count && (strlen(name(i)) != len || memcmp(name(i), list, len) != 0)) i++;
    if (i == count)
      return tb_fail(diag, TB_BROKEN, "%s: \"%.*s\" is not a known name", key,
                     (int)(len < 40 ? len : 40), list);
    bits |= 1u << i;
    list += len;
    if (*list == ',') list++;
  }
  *out_bits = bits;
  return TB_OK;
}

tb_rc tc_feed_event_list(const char *list, struct tb_diag *diag, unsigned *out_bits) {
  return read_list(list, "feed.events", event_name, TC_FEED_EVENT_KINDS, diag, out_bits);
}

tb_rc tc_feed_window_list(const char *list, struct tb_diag *diag, unsigned *out_bits) {
  return read_list(list, "feed.windows", window_name, TO_WINDOWS, diag, out_bits);
}

static const char *finding_name(unsigned i) {
  return to_finding_name((enum to_finding_kind)i);
}

tb_rc tc_feed_finding_list(const char *list, struct tb_diag *diag, unsigned *out_bits) {
  return read_list(list, "alert.findings", finding_name, TO_FINDINGS, diag, out_bits);
}
