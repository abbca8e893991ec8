// SPDX-License-Identifier: Apache-2.0
// Runs a function in a forked child and gives its exit status; -1 when the child died or hung.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

// ThreadSanitizer cannot start threads in the child of a process that has several.
#if defined(__SANITIZE_THREAD__)
#define TW_FORK_TESTS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TW_FORK_TESTS 0
#endif
#endif
#ifndef TW_FORK_TESTS
#define TW_FORK_TESTS 1
#endif
#define SKIP_WITHOUT_FORK() \
  if (!TW_FORK_TESTS) GTEST_SKIP() << "ThreadSanitizer does not follow threads into a forked child"

namespace twibil {

template <class Body> int status_of_child(const Body& body) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    _exit(code);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace twibil
