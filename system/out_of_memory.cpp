#include "system/out_of_memory.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <thread>

#include "system/file.h"
#include "system/program.h"
#include "system/unfinished.h"

namespace qsf::sys {

namespace {

constinit int last_code = 0;
constinit const char* last_line = "";
constinit std::atomic<bool> ending{false};
constinit thread_local bool ends = false;

}  // namespace

void end_without_memory(int code, const char* line) {
  last_code = code;
  last_line = line;
  std::set_new_handler([] {
    if (ends) std::_Exit(last_code);  // the end itself needed memory
    while (ending.exchange(true)) std::this_thread::sleep_for(std::chrono::hours(1));
    ends = true;
    (void)write_some(kError, std::as_bytes(std::span(last_line, std::strlen(last_line))));
    each_unfinished([](const char* path) { (void)std::remove(path); });
    std::_Exit(last_code);
  });
}

}  // namespace qsf::sys
