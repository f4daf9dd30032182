/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of `tracectl top`: prints lines, reads keys, and is restored when the program ends, except by SIGKILL.
 *
 * tk_screen_key() returns TK_KEY_END for SIGINT, SIGTERM and SIGHUP.
 *
 * Threads   one screen a process, used from one thread; tk_screen_wake() from any.
 * Errors    open: returns false, with the reason in why.
 */
#ifndef TK_TOP_SCREEN_H
#define TK_TOP_SCREEN_H

#include "tools/tracectl/top/page.h"

enum { TK_KEY_NONE = -1, TK_KEY_END = -2, TK_KEY_WOKEN = -3, TK_KEY_RESIZED = -4 };
enum { TK_KEY_UP = 0x1001, TK_KEY_DOWN, TK_KEY_PAGE_UP, TK_KEY_PAGE_DOWN, TK_KEY_HOME };

bool tk_screen_open(const char **why);
void tk_screen_close(void);

/* Sets rows and columns of the page. */
void tk_screen_size(struct tk_page *page);
void tk_screen_show(const struct tk_page *page);

int tk_screen_key(int timeout_ms); /* a character, or one of the keys above */
void tk_screen_wake(void);

#endif
