/* SPDX-License-Identifier: Apache-2.0 */
/* Criterion's parameterized tests: part of the stand-in beside this file. */
#include <criterion/criterion.h>
#include <stdlib.h>
