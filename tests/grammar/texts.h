// Grammars of tests, with memory of their own.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "qsf/grammar/grammar.h"

namespace qsf::grammar {

using Json = nlohmann::ordered_json;

inline Json read_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Json::parse(in, nullptr, false);
}

class Made {
 public:
  using Maker = Result<Grammar> (*)(std::string_view, std::span<std::byte>);

  Made(Maker maker, std::string text, std::size_t memory = Grammar::kMemory)
      : text_(std::move(text)), memory_(memory), grammar_(maker(text_, memory_)) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  explicit operator bool() const { return static_cast<bool>(grammar_); }
  const Error& error() const { return grammar_.error(); }
  std::string sentence() const { return grammar_ ? "" : grammar_.error().sentence; }
  Grammar& operator*() { return *grammar_; }
  Grammar* operator->() { return &*grammar_; }

  bool accepts(std::string_view text) {
    grammar_->reset();
    const Result<bool> follows = grammar_->accept(text);
    if (!follows) ADD_FAILURE() << follows.error().sentence;
    return follows && *follows && grammar_->can_end();
  }

 private:
  std::string text_;
  std::vector<std::byte> memory_;
  Result<Grammar> grammar_;
};

}  // namespace qsf::grammar
