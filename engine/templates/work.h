// The memory, limits and failure that parsing and rendering share. After a failure nothing is evaluated any more.
#pragma once

#include <string_view>

#include "qsf/base/result.h"
#include "qsf/templates/template.h"
#include "templates/pool.h"
#include "templates/value.h"

namespace qsf::templates {

class Work {
 public:
  Work(std::span<std::byte> memory, const Limits& limits) : pool(memory), limits(limits), steps_left_(limits.steps) {}

  bool failed() const { return error.code != ErrorCode::none; }
  /// Keeps the first failure. Returns a missing value, so that an evaluation can end with it.
  template <class... Args>
  Value fail(FormatString<std::type_identity_t<Args>...> format, const Args&... args) {
    const std::array<FormatValue, sizeof...(Args)> values{FormatValue(args)...};
    return fail_with(ErrorCode::bad_template, format.text().data(), values.data(), format_kinds<Args...>());
  }
  [[gnu::cold]] Value fail_with(ErrorCode code, const char* format, const FormatValue* values, FormatKinds kinds);

  /// Counts steps. Returns false after a failure.
  bool spend(std::uint64_t steps) {
    if (steps > steps_left_) return too_many_steps();
    steps_left_ -= steps;
    return !failed();
  }
  /// Whether two texts are equal. Counts the time of the comparison.
  bool same(std::string_view a, std::string_view b) { return a.size() == b.size() && spend(a.size() / 32) && a == b; }
  void begin() {
    steps_left_ = limits.steps;
    depth = 0;
    error = Error();
  }

  /// Returns zeroed values, or null after a failure or if there is no memory.
  template <class T>
  T* make(std::size_t count = 1) {
    T* const at = spend(count / 8) ? pool.take_zeroed<T>(count) : nullptr;
    if (at == nullptr) out_of_memory();
    return at;
  }
  /// Returns a text whose bytes are not copied. Without memory, the text is empty.
  const Text* text(std::string_view bytes, Origin origin = Origin::own, const Origin* origins = nullptr);
  Value text_value(std::string_view bytes, Origin origin = Origin::own) { return Value(text(bytes, origin)); }
  [[gnu::cold]] void out_of_memory();

  Pool pool;
  Limits limits;
  Error error;
  std::uint32_t at = 0;     // the node that is being parsed or evaluated
  std::uint32_t depth = 0;  // of nested evaluations

 private:
  [[gnu::cold]] bool too_many_steps();

  std::uint64_t steps_left_;
};

/// Counts a nested evaluation while it lives. False if there are too many.
class Nested {
 public:
  explicit Nested(Work& work) : work_(work) {
    if (++work_.depth > work_.limits.depth) {
      work_.fail("its blocks, expressions or calls are nested more than {} deep", work_.limits.depth);
    }
  }
  ~Nested() { --work_.depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  explicit operator bool() const { return !work_.failed(); }

 private:
  Work& work_;
};

}  // namespace qsf::templates
