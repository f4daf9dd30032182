/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/convert/otlp_data.h"

#include <string.h>

#include "tools/tracectl/term/tracectl.h"

/* Field numbers. */
enum { DATA_RESOURCE_ITEMS = 1 };
enum { RESOURCE_ITEMS_RESOURCE = 1, RESOURCE_ITEMS_SCOPE_ITEMS };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_ITEMS_SCOPE = 1 };
enum { SCOPE_NAME = 1 };
enum { KEY = 1, VALUE };
enum { VALUE_TEXT = 1, VALUE_INT = 3 };

tb_rc tk_otlp_data_open(struct tk_otlp_data *data, FILE *file,
                        const struct tk_format_options *options, const char *path) {
  data->file = file;
  data->diag = options->diag;
  tb_buf_init(&data->pair, &tk_mem);
  tb_buf_init(&data->value, &tk_mem);
  tb_buf_init(&data->scope, &tk_mem);
  tb_buf_init(&data->resource, &tk_mem);
  tb_buf_init(&data->message, &tk_mem);
  if (options->url == NULL) return TB_OK;
  return tk_otlp_post_new(options->url, path, data->diag, &data->post);
}

void tk_otlp_data_fini(struct tk_otlp_data *data) {
  tb_buf_fini(&data->pair);
  tb_buf_fini(&data->value);
  tb_buf_fini(&data->scope);
  tb_buf_fini(&data->resource);
  tb_buf_fini(&data->message);
  tk_otlp_post_free(data->post);
}

static void put_pair(struct tk_otlp_data *data, struct tb_buf *out, unsigned field,
                     const char *key) {
  tk_put_words(&data->pair, KEY, key);
  tk_put_message(&data->pair, VALUE, &data->value);
  tk_put_message(out, field, &data->pair);
}

void tk_otlp_put_text(struct tk_otlp_data *data, struct tb_buf *out, unsigned field,
                      const char *key, struct to_string text) {
  tk_put_text(&data->value, VALUE_TEXT, text);
  put_pair(data, out, field, key);
}

void tk_otlp_put_int(struct tk_otlp_data *data, struct tb_buf *out, unsigned field, const char *key,
                     int64_t number) {
  tk_put_value(&data->value, VALUE_INT, (uint64_t)number);
  put_pair(data, out, field, key);
}

/* For a file, the service is its name. */
static struct to_string service_of(const struct tk_stream *s) {
  const char *slash = strrchr(s->name, '/');

  if (!s->is_remote && slash != NULL) return (struct to_string){ slash + 1, strlen(slash + 1) };
  return (struct to_string){ s->name, strcspn(s->name, "/") };
}

tb_rc tk_otlp_send(struct tk_otlp_data *data, const struct tk_stream *s, struct tb_buf *items) {
  struct tb_buf *resource = &data->resource, *scope = &data->scope, *message = &data->message;

  if (items->rc != TB_OK) return items->rc;
  tk_put_words(&data->value, SCOPE_NAME, "tracectl");
  tk_put_message(scope, SCOPE_ITEMS_SCOPE, &data->value);
  tb_buf_add(scope, items->data, items->len);
  tb_buf_clear(items);
  tk_otlp_put_text(data, items, RESOURCE_ATTRIBUTES, "service.name", service_of(s));
  tk_otlp_put_text(data, items, RESOURCE_ATTRIBUTES, "service.instance.id",
                   (struct to_string){ s->name, strlen(s->name) });
  tk_put_message(resource, RESOURCE_ITEMS_RESOURCE, items);
  tk_put_message(resource, RESOURCE_ITEMS_SCOPE_ITEMS, scope);
  tb_buf_clear(message);
  tk_put_message(message, DATA_RESOURCE_ITEMS, resource);
  if (message->rc != TB_OK) return message->rc;
  if (data->post != NULL) return tk_otlp_post(data->post, message->data, message->len, data->diag);
  return fwrite(message->data, 1, message->len, data->file) == message->len ? TB_OK : TB_IO;
}
