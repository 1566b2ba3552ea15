// Sizes of a configuration: whole numbers, checked against their ranges before use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/recipes/settings.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns the form of a header's size or a layer's key. `name` must be one of them.
const KeyForm& count_form(std::string_view name);

/// Reads counts by their keys. The first error is kept, so that a list of counts is read first and checked once.
class Counts {
 public:
  /// `lookup` and `file` must outlive the object. `file` is the configuration's name for error sentences.
  Counts(const Lookup& lookup, std::string_view file) : lookup_(lookup), file_(file) {}

  /// Reads the count at `key`. Without a fallback the key is required.
  std::uint32_t read(const std::string& key, const KeyForm& form, std::optional<double> fallback = {});
  /// Returns `json` as a value of the form. For an error, which names `key`, returns the smallest value of the form.
  std::uint32_t take(const Json& json, std::string_view key, const KeyForm& form);
  std::string in_file(std::string_view key) const { return lookup_.in_file(key); }
  /// Keeps the error if it is the first.
  void fail(const Error& error) {
    if (status_) status_ = error;
  }

  const Status& status() const { return status_; }

 private:
  const Lookup& lookup_;
  std::string_view file_;
  Status status_;
};

/// Fills in the sizes of layers.def, except a GGUF file's vocabulary, which is the number of rows of its embedding. If
/// GGUF lists a size for each layer, the size is the first layer's, or the only one that is not 0 (layers of another
/// kind have 0). Other layers' sizes go to `by_layer`. Returns bad_input, with `file` and the key, if a size is missing
/// or out of its range.
Status read_sizes(const Recipe& recipe, Naming naming, const Lookup& lookup, std::string_view file, ModelConfig& config,
                  std::vector<LayerException>& by_layer);

}  // namespace qsf::convert
