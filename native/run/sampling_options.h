// The options of sampling on the command line of qsf-run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "native/run/options.h"

namespace CLI {
class App;
}

namespace qsf::run {

class SamplingOptions {
 public:
  /// Adds the options to the app's present group. They set fields of `options`; both objects must outlive the app.
  void add(CLI::App& app, Options& options);
  /// Reads the options that are lists. Returns a sentence about a mistake in any of sampling.
  std::optional<std::string> read(Options& options) const;

 private:
  std::string samplers_;
  std::vector<std::string> biases_, breakers_;
};

}  // namespace qsf::run
