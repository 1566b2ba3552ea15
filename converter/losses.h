// What single matrices cost a model in types, kept in a file between conversions of that model to several sizes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "converter/input.h"
#include "qsf/base/result.h"
#include "qsf/file/layout.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

class Losses {
 public:
  /// `measured_on` says by a digest which model lost them over which texts.
  explicit Losses(std::string measured_on) : measured_on_(std::move(measured_on)) {}
  /// What write() wrote. bad_input for anything else, bad_argument for what was measured on something else.
  static Result<Losses> read(const Input& file, const std::string& measured_on);

  /// In nats per token.
  std::optional<double> find(std::pair<std::uint32_t, Role> tensor, FormatId type) const;
  void add(std::pair<std::uint32_t, Role> tensor, FormatId type, double loss);
  /// Whole, in place of an earlier file, when something was added.
  Status write(const std::string& path) const;

 private:
  std::string measured_on_;
  std::map<std::tuple<std::uint32_t, Role, FormatId>, double> losses_;  // by section, role and type
  bool changed_ = false;
};

}  // namespace qsf::convert
