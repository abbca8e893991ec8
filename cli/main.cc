// SPDX-License-Identifier: Apache-2.0
// `twibil`: trained networks from the command line, without Python.
#include <csignal>
#include <cstdio>
#include <new>

#include "arguments.h"
#include "base/error.h"
#include "commands.h"

using namespace twibil;

namespace {

constexpr const char* kHelp = R"(twibil COMMAND
  predict MODEL PICTURE...   what a network sees in JPEG or PNG files. A classifier's five best names are printed; a
                             detector's boxes are printed and drawn into PICTURE-boxes.png
                               --out DIR         folder of those pictures (default: the current one)
                               --threshold X     smallest score of a box, 0 to 1
  summary MODEL              layers, shapes and parameters
  explain MODEL              what the compiler makes of the network: kernels, memory
                               --html FILE       the same as a page with a picture of the memory
                               --shape 1x3x224x224 (summary and explain) the input's shape
  bench                      images per second of well-known networks on this machine, and what Winograd convolutions gain
                               --networks A,B    some of alexnet, vgg11, vgg16, inception-bn, inception-v3, resnet-50,
                                                 resnet-152 (default: all), or others of the model zoo
                               --batches 1,2,4,8,16,32   --threads N   --rounds 7   --seconds 1.5 (of all rounds)
                               --chart FILE.svg  draws the result
  doctor                     the processor, its instruction sets, threads, memory, settings
  help                       prints this
MODEL is NAME for the files NAME-symbol.json and NAME-0000.params, which export() and MXNet write. NAME-predict.json says
how pictures become numbers: {"size": [224, 224], "divide": 255, "mean": [...], "std": [...], "classes": [...],
"scores": "logits", "detector": {"threshold": 0.4, "overlap": 0.45}}; every member may be missing.
Exit status: 0 when all went well, 1 when a file or a picture is at fault, 2 for a mistake in the command line.
)";

struct Command {
  const char* name;
  int (*run)(const cli::Words&);
};
constexpr Command kCommands[] = {{"predict", cli::predict},
                                 {"summary", cli::summary},
                                 {"explain", cli::explain},
                                 {"bench", cli::bench},
                                 {"doctor", cli::doctor}};

int run(const cli::Words& words) {
  if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h")
    return std::fputs(kHelp, words.empty() ? stderr : stdout), words.empty() ? 2 : 0;
  if (words[0] == "--version") return std::puts("twibil " TWIBIL_VERSION), 0;
  for (const Command& c : kCommands)
    if (words[0] == c.name) return c.run({words.begin() + 1, words.end()});
  throw cli::UsageError("there is no command " + words[0]);
}

}  // namespace

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_DFL);  // `twibil summary model | head` ends quietly
  try {
    int status = run({arguments + 1, arguments + count});
    if (std::fflush(stdout) != 0) return std::fputs("twibil: the output could not be written\n", stderr), 1;
    return status;
  } catch (const cli::UsageError& e) {
    std::fprintf(stderr, "twibil: %s\n`twibil help` tells more\n", e.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fputs("twibil: there is not enough memory\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "twibil: %s\n", e.what());
  }
  return 1;
}
