/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces Criterion under the sanitizers: it cannot start under ThreadSanitizer, and under AddressSanitizer its thread
 * makes fork() unsafe.
 *
 * The same test files compile against it: Test(), TestSuite(), ParameterizedTest() and the cr_*
 * macros that our tests use. Each test registers itself in a constructor and runs in a forked
 * child of a process without threads; main() (main.c here) prints "N passed, N failed". A test passes when its
 * child exits 0 (or with the stated .exit_code or .signal): a race ends it with 66, a leak with 23. There is no .timeout,
 * which is Criterion's too: patience.h says how long a case may wait.
 */
#ifndef TT_STANDIN_CRITERION_H
#define TT_STANDIN_CRITERION_H

#pragma GCC system_header /* as the real one is: no warnings about what its macros compare */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct criterion_test_params {
  size_t size; /* of one parameter */
  void *params;
  size_t length;
};

struct tt_options {
  int signal, exit_code;
  bool disabled;
  void (*init)(void), (*fini)(void);
  const char *description;
};

struct tt_test {
  const char *suite, *name;
  struct tt_options options;
  void (*run)(void);
  void (*run_param)(void *param);
  struct criterion_test_params (*params)(void);
  struct tt_test *next;
};

struct tt_suite {
  const char *name;
  struct tt_options options; /* what a test leaves out */
  struct tt_suite *next;
};

void tt_register(struct tt_test *test);
void tt_register_suite(struct tt_suite *suite);
_Noreturn void tt_end_case(int code); /* _exit, without its header's many names */
void tt_failed(const char *file, int line, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#define TT_TEST(Suite, Name, run_, run_param_, params_, ...)                                       \
  __attribute__((constructor)) static void Suite##_##Name##_register(void) {                       \
    static struct tt_test test = { .suite = #Suite,                                                \
                                   .name = #Name,                                                  \
                                   .options = { __VA_ARGS__ },                                     \
                                   .run = run_,                                                    \
                                   .run_param = run_param_,                                        \
                                   .params = params_ };                                            \
    tt_register(&test);                                                                            \
  }
#define Test(Suite, Name, ...)                                                                     \
  static void Suite##_##Name##_run(void);                                                          \
  TT_TEST(Suite, Name, Suite##_##Name##_run, NULL, NULL, ##__VA_ARGS__)                            \
  static void Suite##_##Name##_run(void)
#define TestSuite(Name, ...)                                                                       \
  __attribute__((constructor)) static void Name##_register_suite(void) {                           \
    static struct tt_suite suite = { .name = #Name, .options = { __VA_ARGS__ } };                  \
    tt_register_suite(&suite);                                                                     \
  }                                                                                                \
  struct tt_suite

#define ParameterizedTestParameters(Suite, Name)                                                   \
  static struct criterion_test_params Suite##_##Name##_params(void)
#define ParameterizedTest(Param, Suite, Name, ...)                                                 \
  static void Suite##_##Name##_run(Param);                                                         \
  static void Suite##_##Name##_run_param(void *param) {                                            \
    Suite##_##Name##_run(param);                                                                   \
  }                                                                                                \
  TT_TEST(Suite, Name, NULL, Suite##_##Name##_run_param, Suite##_##Name##_params, ##__VA_ARGS__)   \
  static void Suite##_##Name##_run(Param)
#define cr_make_param_array(Type, Array, Len, ...)                                                 \
  ((struct criterion_test_params){                                                                 \
      .size = sizeof(Type), .params = (void *)(Array), .length = (Len) })
#define cr_malloc malloc
#define cr_free   free

/* The optional message is a format with its arguments, as Criterion's. */
#define TT_SAY(what, ...)        tt_failed(__FILE__, __LINE__, what, " " __VA_ARGS__)
#define TT_EXPECT(ok, what, ...) ((ok) ? (void)0 : TT_SAY(what, ##__VA_ARGS__))
#define TT_ASSERT(ok, what, ...) ((ok) ? (void)0 : (TT_SAY(what, ##__VA_ARGS__), tt_end_case(1)))

#define cr_assert(c, ...)               TT_ASSERT(c, #c, ##__VA_ARGS__)
#define cr_assert_not(c, ...)           TT_ASSERT(!(c), "!" #c, ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...)         TT_ASSERT((a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...)        TT_ASSERT((a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...)         TT_ASSERT((a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...)        TT_ASSERT((a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...)         TT_ASSERT((a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...)        TT_ASSERT((a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_assert_null(p, ...)          TT_ASSERT((p) == NULL, #p " == NULL", ##__VA_ARGS__)
#define cr_assert_not_null(p, ...)      TT_ASSERT((p) != NULL, #p " != NULL", ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)     TT_ASSERT(strcmp(a, b) == 0, #a " is " #b, ##__VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)    TT_ASSERT(strcmp(a, b) != 0, #a " is not " #b, ##__VA_ARGS__)
#define cr_assert_str_empty(s, ...)     TT_ASSERT(*(s) == '\0', #s " is empty", ##__VA_ARGS__)
#define cr_assert_str_not_empty(s, ...) TT_ASSERT(*(s) != '\0', #s " is not empty", ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                                             \
  TT_ASSERT(memcmp(a, b, n) == 0, #a " equals " #b, ##__VA_ARGS__)
#define cr_assert_arr_neq(a, b, n, ...)                                                            \
  TT_ASSERT(memcmp(a, b, n) != 0, #a " differs from " #b, ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                                           \
  TT_ASSERT((a) - (b) <= (e) && (b) - (a) <= (e), #a " is about " #b, ##__VA_ARGS__)
#define cr_assert_fail(...)             TT_ASSERT(false, "cr_assert_fail", ##__VA_ARGS__)
#define cr_expect(c, ...)               TT_EXPECT(c, #c, ##__VA_ARGS__)
#define cr_expect_not(c, ...)           TT_EXPECT(!(c), "!" #c, ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...)         TT_EXPECT((a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...)        TT_EXPECT((a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...)         TT_EXPECT((a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...)        TT_EXPECT((a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...)         TT_EXPECT((a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...)        TT_EXPECT((a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_expect_null(p, ...)          TT_EXPECT((p) == NULL, #p " == NULL", ##__VA_ARGS__)
#define cr_expect_not_null(p, ...)      TT_EXPECT((p) != NULL, #p " != NULL", ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)     TT_EXPECT(strcmp(a, b) == 0, #a " is " #b, ##__VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)    TT_EXPECT(strcmp(a, b) != 0, #a " is not " #b, ##__VA_ARGS__)
#define cr_expect_str_empty(s, ...)     TT_EXPECT(*(s) == '\0', #s " is empty", ##__VA_ARGS__)
#define cr_expect_str_not_empty(s, ...) TT_EXPECT(*(s) != '\0', #s " is not empty", ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...)                                                             \
  TT_EXPECT(memcmp(a, b, n) == 0, #a " equals " #b, ##__VA_ARGS__)
#define cr_expect_arr_neq(a, b, n, ...)                                                            \
  TT_EXPECT(memcmp(a, b, n) != 0, #a " differs from " #b, ##__VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...)                                                           \
  TT_EXPECT((a) - (b) <= (e) && (b) - (a) <= (e), #a " is about " #b, ##__VA_ARGS__)
#define cr_fatal          cr_assert_fail
#define cr_fail(...)      TT_EXPECT(false, "cr_fail", ##__VA_ARGS__)
#define cr_skip_test(...) (printf("SKIP " __VA_ARGS__), printf("\n"), fflush(NULL), tt_end_case(0))
#define cr_log_info(...)  (printf(__VA_ARGS__), printf("\n"))
#define cr_log_warn       cr_log_info

#endif
