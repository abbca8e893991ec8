# SPDX-License-Identifier: Apache-2.0
# Compiler flags that every translation unit of the library shares, as the interface target twibil_flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

# The base directory makes paths relative, so that checkouts in different places share one cache.
find_program(TWIBIL_CCACHE_PROGRAM ccache)
mark_as_advanced(TWIBIL_CCACHE_PROGRAM)
if(TWIBIL_CCACHE AND TWIBIL_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${TWIBIL_CCACHE_PROGRAM})
endif()

add_library(twibil_flags INTERFACE)
# No value-changing shortcuts: only errno and traps, which nothing here reads, are given up. Initial-exec thread locals
# cost one instruction where the default for shared objects costs a call; the eager path reads several per operation.
target_compile_options(twibil_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -fno-math-errno -fno-trapping-math -ftls-model=initial-exec)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # g++ clears structures of 128 bytes and more (attributes, layouts) by `rep stos`, which takes longer to start than a
  # small operation takes to run; a few vector stores do it.
  target_compile_options(twibil_flags INTERFACE
    -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign
    -mmemcpy-strategy=vector_loop:512:noalign,libcall:-1:noalign)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # What user operators may call (base/export.h) is not meant to be replaced, so it may be inlined.
  target_compile_options(twibil_flags INTERFACE -fno-semantic-interposition)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(twibil_flags INTERFACE -Werror=reorder-init-list)  # as g++: fields of a declaration in order
endif()

if(TWIBIL_SANITIZE STREQUAL "address")
  # Whether a finding ends the program is for UBSAN_OPTIONS=halt_on_error=1 to say (`./dev asan` does): without it one run
  # shows them all. Checks of the standard library's containers come along.
  set(twibil_sanitize -fsanitize=address,undefined,float-cast-overflow -fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
elseif(TWIBIL_SANITIZE STREQUAL "thread")
  set(twibil_sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(TWIBIL_SANITIZE)
  message(FATAL_ERROR "TWIBIL_SANITIZE must be empty, address or thread; got '${TWIBIL_SANITIZE}'")
endif()
if(TWIBIL_SANITIZE)
  add_compile_options(${twibil_sanitize})
  add_link_options(${twibil_sanitize})
endif()
