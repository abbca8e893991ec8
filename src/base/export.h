// SPDX-License-Identifier: Apache-2.0
// What libraries of user operators, loaded at run time, may call. Everything else stays hidden.
#pragma once
#define TW_API __attribute__((visibility("default")))
