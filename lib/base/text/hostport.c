/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/hostport.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool host_byte_fits(char c, bool bracketed) {
  bool digit = c >= '0' && c <= '9';
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

  if (bracketed) return digit || letter || c == ':' || c == '.' || c == '%';
  return digit || letter || c == '.' || c == '-' || c == '_';
}

static bool parse_port(const char *text, uint16_t *out) {
  unsigned port = 0;

  if (*text == '\0') return false;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return false;
    port = port * 10 + (unsigned)(*text - '0');
    if (port > UINT16_MAX) return false;
  }
  *out = (uint16_t)port;
  return true;
}

static tb_rc parse_hostport(const char *text, bool port_required, struct tb_diag *diag,
                            struct tb_hostport *out) {
  struct tb_hostport got = { 0 };
  bool bracketed = text[0] == '[';
  const char *host = text + bracketed;
  const char *end = bracketed ? strchr(host, ']') : strchrnul(host, ':');
  const char *colon = bracketed && end != NULL ? end + 1 : end;

  if (end == NULL || (*colon != ':' && (port_required || *colon != '\0')))
    return tb_fail(diag, TB_BROKEN, "\"%.120s\" is not HOST%s", text,
                   port_required ? ":PORT" : " or HOST:PORT");
  if (!bracketed && *colon == ':' && strchr(colon + 1, ':') != NULL)
    return tb_fail(diag, TB_BROKEN,
                   "\"%.120s\": an IPv6 address goes in brackets, as in [::1]:7070", text);

  size_t n = (size_t)(end - host);
  if (n == 0 || n > TB_HOST_MAX)
    return tb_fail(diag, TB_BROKEN, "\"%.120s\": the host is %s", text,
                   n == 0 ? "missing" : "too long");
  for (size_t i = 0; i < n; i++)
    if (!host_byte_fits(host[i], bracketed))
      return tb_fail(diag, TB_BROKEN, "\"%.120s\": not a host name or address", text);
  memcpy(got.host, host, n);
  if (*colon == ':' && !parse_port(colon + 1, &got.port))
    return tb_fail(diag, TB_BROKEN, "\"%.120s\": the port is not a number from 0 to 65535", text);
  *out = got;
  return TB_OK;
}

tb_rc tb_hostport_parse(const char *text, struct tb_diag *diag, struct tb_hostport *out) {
  return parse_hostport(text, true, diag, out);
}

tb_rc tb_host_parse(const char *text, struct tb_diag *diag, struct tb_hostport *out) {
  return parse_hostport(text, false, diag, out);
}

bool tb_host_is_loopback(const char *host) {
  unsigned char address[4]; /* 127.evil.example is a name */

  if (strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0) return true;
  return inet_pton(AF_INET, host, address) == 1 && address[0] == 127;
}
