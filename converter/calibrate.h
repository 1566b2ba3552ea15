// Calibration: what enters a model's products when it reads a text, and what rounding a tensor does to what it says,
// both from the engine itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/convert.h"
#include "converter/kept_rows.h"
#include "converter/measure.h"
#include "qsf/base/result.h"

namespace qsf {
class Host;
}

namespace qsf::convert {

/// Told how far a part of the work is, while it goes on; false ends it with ErrorCode::cancelled.
using Watch = std::function<bool(std::string_view what, std::uint64_t done, std::uint64_t total)>;

/// A model that is run while it is converted. It is written beside the output for as long as a run takes.
class Calibrator {
 public:
  /// `model` must outlive it.
  Calibrator(const ModelSource& model, std::string output, Watch watch, const Workers& workers = {})
      : model_(model), path_(std::move(output) + ".calibration"), watch_(std::move(watch)), workers_(workers) {}

  /// What a layer does to the model.
  struct Layer {
    double cosine = 0;  // between what it gets and what it gives, the mean over positions
    double loss = 0;    // the model's divergence from itself without it, as loss() has it
  };

  /// Reads a text, in windows of at most 512 tokens, each position once, and `own_tokens` tokens of texts that the
  /// model writes itself; then a part of them without each layer. bad_argument when the model has no tokenizer or the
  /// text no tokens.
  Status read(const std::string& text_file, std::uint64_t own_tokens);
  const Calibration& calibration() const { return calibration_; }
  std::span<const Layer> layers() const { return layers_; }
  /// A digest of the model and of the texts that losses are measured on, once they were read.
  const std::string& measured_on() const { return measured_on_; }

  /// The mean divergence of the model from itself in nats per token with one matrix in another type, over the first
  /// texts that were read: its own, where there are some.
  Result<double> loss(std::pair<std::uint32_t, Role> tensor, FormatId type);
  /// The same of the whole model as it was written to `path` with these options; a GGUF file is read for it.
  Result<double> loss(const Options& options, const std::string& path);

 private:
  Status read_layers();
  Result<double> divergence(Host& host);
  Result<double> divergence(const std::string& path);
  Status write(const ModelSource& model, const Options& options);

  const ModelSource& model_;
  std::string path_;
  Watch watch_;
  Workers workers_;
  Calibration calibration_;
  std::vector<Layer> layers_;
  std::string measured_on_;
  std::vector<std::uint32_t> probe_;  // what losses are measured on
  std::optional<KeptRows> logits_;    // of the exact model there, the first that is run over it
};

}  // namespace qsf::convert
