# SPDX-License-Identifier: Apache-2.0
# Every option of the build, in one place.
option(TWIBIL_PYTHON "Build the Python extension twibil/_core" ON)
option(TWIBIL_TESTS "Build the unit tests (needs GoogleTest)" ${PROJECT_IS_TOP_LEVEL})
option(TWIBIL_EXAMPLES "Build the programs of examples/" ${PROJECT_IS_TOP_LEVEL})
option(TWIBIL_CLI "Build the command twibil" ${PROJECT_IS_TOP_LEVEL})
option(TWIBIL_BENCHMARKS "Build the programs of benchmarks/ (needs Google Benchmark)" OFF)
option(TWIBIL_CODECS "Decode JPEG and PNG pictures (needs libjpeg-turbo, libpng and zlib)" ON)
option(TWIBIL_CCACHE "Compile through ccache where it is installed" ON)
set(TWIBIL_SANITIZE "" CACHE STRING "Sanitizer to build with: empty, address (with undefined) or thread")
set_property(CACHE TWIBIL_SANITIZE PROPERTY STRINGS "" address thread)
