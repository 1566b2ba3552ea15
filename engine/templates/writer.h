// Output, or a text that is being made, with the origin of each byte.
#pragma once

#include <string_view>

#include "templates/work.h"

namespace qsf::templates {

class Writer {
 public:
  /// Makes a text in the pool.
  explicit Writer(Work& work) : work_(work) {}
  /// Passes everything to the sink.
  Writer(Work& work, const Sink& sink) : work_(work), sink_(&sink) {}

  /// Adds bytes. `origins` has one for each byte if `origin` is mixed.
  void add(std::string_view bytes, Origin origin = Origin::own, const Origin* origins = nullptr);
  void add(const Text& text) { add(text.view(), text.origin, text.origins); }
  /// Adds the bytes from `begin` to `end`.
  void add(const Text& text, std::size_t begin, std::size_t end) {
    add(text.view().substr(begin, end - begin), text.origin, text.origins + (text.origin == Origin::mixed ? begin : 0));
  }
  void add(std::string_view bytes, std::size_t times) {
    for (std::size_t i = 0; i < times && work_.spend(1); ++i) add(bytes);
  }

  /// Returns the text.
  Value finish();
  std::size_t size() const { return size_; }

 private:
  bool reserve(std::size_t bytes);
  bool mix();
  void put(std::string_view bytes, Origin origin, const Origin* origins);

  Work& work_;
  const Sink* sink_ = nullptr;
  char* bytes_ = nullptr;
  Origin* origins_ = nullptr;  // once they differ
  std::size_t size_ = 0, room_ = 0;
  Origin origin_ = Origin::own;
};

}  // namespace qsf::templates
