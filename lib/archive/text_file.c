/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/text_file.h"

#include <stdlib.h>
#include <string.h>

#include "archive/state_dir.h"

static tb_rc read_lines(const struct tc_text_file *file, char *text, void *self,
                        tb_rc (*read)(void *self, const char *line, bool *out_is_one),
                        struct tb_diag *out_wrong) {
  tb_rc rc = TB_OK;

  for (unsigned number = 1; rc == TB_OK && text != NULL && *text != '\0'; number++) {
    bool is_one = true;
    rc = read(self, strsep(&text, "\n"), &is_one);
    if (!is_one && out_wrong->rc == TB_OK)
      tb_fail(out_wrong, TB_BROKEN, "%s line %u is not understood", file->name, number);
  }
  return rc;
}

tb_rc tc_text_file_open(struct tc_text_file *file, int dir_fd, const char *name, size_t bytes_max,
                        void *self, tb_rc (*read)(void *self, const char *line, bool *out_is_one),
                        struct tb_diag *diag, struct tb_diag *out_wrong) {
  char *text;

  *file = (struct tc_text_file){ .dir_fd = dir_fd, .name = name, .bytes_max = bytes_max };
  pthread_mutex_init(&file->saving, NULL);
  tb_diag_clear(out_wrong);
  tb_rc rc = tc_file_text(dir_fd, name, bytes_max, diag, &text);
  bool is_lost = rc == TB_BROKEN || rc == TB_UNREADABLE;
  if (is_lost) {
    *out_wrong = *diag;
    tb_diag_clear(diag);
  }
  if (is_lost || rc == TB_NOTFOUND) return TB_OK;
  if (rc == TB_OK) rc = read_lines(file, text, self, read, out_wrong);
  file->saved = atomic_load(&file->version);
  free(text);
  return rc;
}

void tc_text_file_fini(struct tc_text_file *file) {
  pthread_mutex_destroy(&file->saving);
}

void tc_text_file_changed(struct tc_text_file *file) {
  atomic_fetch_add(&file->version, 1);
}

static tb_rc save_locked(struct tc_text_file *file, void *self,
                         void (*print)(void *self, struct tb_buf *out), struct tb_diag *diag) {
  uint64_t version =
      atomic_load(&file->version); /* read first: the printed list is at least this new */
  struct tb_buf text;
  struct tb_mem mem;

  if (version == file->saved) return TB_OK;
  tb_mem_init(&mem, tb_mem_libc, NULL, 2 * file->bytes_max); /* a buffer grows by doubling */
  tb_buf_init(&text, &mem);
  print(self, &text);
  tb_rc rc = text.rc;
  if (rc == TB_OK) rc = tc_file_replace(file->dir_fd, file->name, text.data, text.len, diag);
  tb_buf_fini(&text);
  if (rc == TB_OK) file->saved = version;
  return rc;
}

tb_rc tc_text_file_save(struct tc_text_file *file, void *self,
                        void (*print)(void *self, struct tb_buf *out), struct tb_diag *diag) {
  pthread_mutex_lock(&file->saving);
  tb_rc rc = save_locked(file, self, print, diag);
  pthread_mutex_unlock(&file->saving);
  return rc;
}
