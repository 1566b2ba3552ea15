// The losses of single matrices by type, in a file that conversions of one model to several sizes share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "converter/files/input.h"
#include "qsf/base/result.h"
#include "qsf/file/layout.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

class Losses {
 public:
  /// `measured_on` is a digest of the model and the measured texts.
  explicit Losses(std::string measured_on) : measured_on_(std::move(measured_on)) {}
  /// Reads a file of write(). Returns bad_input for anything else.
  static Result<Losses> read(const Input& file);
  /// Returns bad_argument, with `file` as the name, if the losses were measured on something else.
  Status check(const std::string& measured_on, std::string_view file) const;

  /// Returns the loss in nats per token.
  std::optional<double> find(std::pair<std::uint32_t, Role> tensor, FormatId type) const;
  void add(std::pair<std::uint32_t, Role> tensor, FormatId type, double loss);
  /// Replaces the file as a whole if a loss was added.
  Status write(const std::string& path) const;

 private:
  std::string measured_on_;
  std::map<std::tuple<std::uint32_t, Role, FormatId>, double> losses_;  // by stage, role and type
  bool changed_ = false;
};

}  // namespace qsf::convert
