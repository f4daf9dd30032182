/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/report.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

void ta_report_init(struct ta_report *r) {
  pthread_mutex_init(&r->lock, NULL);
}

void ta_report_fini(struct ta_report *r) {
  pthread_mutex_destroy(&r->lock);
}

void ta_report_log(struct ta_report *r, int level, const char *text) {
  if (r->log != NULL) r->log(r->log_self, level, text);
}

void ta_report_state(struct ta_report *r, enum ta_client_state state) {
  pthread_mutex_lock(&r->lock);
  r->status.state = state;
  pthread_mutex_unlock(&r->lock);
}

void ta_report_connect(struct ta_report *r) {
  pthread_mutex_lock(&r->lock);
  r->status.connects++;
  pthread_mutex_unlock(&r->lock);
}

void ta_report_welcome(struct ta_report *r) {
  pthread_mutex_lock(&r->lock);
  r->status.welcomes++;
  r->status.last_error[0] = 0;
  pthread_mutex_unlock(&r->lock);
}

void ta_report_restart(struct ta_report *r, const unsigned char stream[16]) {
  pthread_mutex_lock(&r->lock);
  memcpy(r->status.stream, stream, sizeof r->status.stream);
  r->status.restarted++;
  pthread_mutex_unlock(&r->lock);
}

void ta_report_refused(struct ta_report *r) {
  pthread_mutex_lock(&r->lock);
  r->status.refused = true;
  pthread_mutex_unlock(&r->lock);
}

void ta_report_error(struct ta_report *r, const char *text) {
  pthread_mutex_lock(&r->lock);
  bool changed = strcmp(r->status.last_error, text) != 0;
  snprintf(r->status.last_error, sizeof r->status.last_error, "%s", text);
  pthread_mutex_unlock(&r->lock);
  if (changed) ta_report_log(r, LOG_WARNING, text);
}

void ta_report_error_over(struct ta_report *r, const char *text) {
  pthread_mutex_lock(&r->lock);
  bool last = strcmp(r->status.last_error, text) == 0;
  if (last) r->status.last_error[0] = 0;
  pthread_mutex_unlock(&r->lock);
  if (last) ta_report_log(r, LOG_INFO, "acks come again");
}

void ta_report_status(struct ta_report *r, struct ta_client_status *out) {
  pthread_mutex_lock(&r->lock);
  *out = r->status;
  pthread_mutex_unlock(&r->lock);
}
