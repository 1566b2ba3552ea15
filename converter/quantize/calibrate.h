// Calibration: the inputs of a model's matrices while it reads a text, and the effect of a rounded tensor on its
// output, both measured with the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/conversion/conversion.h"
#include "converter/files/kept_rows.h"
#include "converter/rounding/measure.h"
#include "qsf/base/result.h"

namespace qsf {
class Host;
}

namespace qsf::convert {

/// Receives the progress of a part of the work. Returning false ends the work with ErrorCode::cancelled.
using Watch = std::function<bool(std::string_view what, std::uint64_t done, std::uint64_t total)>;

/// A model that runs during its conversion. Each run writes it to a temporary file next to the output.
class Calibrator {
 public:
  /// `model` must outlive the object.
  Calibrator(const LoadedModel& model, std::string output, Watch watch, const Workers& workers = {})
      : model_(model), path_(std::move(output) + ".calibration"), watch_(std::move(watch)), workers_(workers) {}

  /// The effect of a layer on the model.
  struct Layer {
    double cosine = 0;  // between the layer's input and output, mean over positions
    double loss = 0;    // divergence of the model without the layer from itself, measured as in loss()
  };

  /// Checks before the work starts. Returns bad_argument if the model has no tokenizer, the text is empty, or something
  /// exists at the path of the temporary model, and bad_text if the file is no text.
  Status check(const std::string& text_file) const;

  /// Reads a text, in windows of at most 512 tokens, each position once, then `own_tokens` tokens of texts that the
  /// model writes itself. Then reads a part of them without each layer. Returns bad_argument if the text has no tokens.
  Status read(const std::string& text_file, std::uint64_t own_tokens);
  const Calibration& calibration() const { return calibration_; }
  std::span<const Layer> layers() const { return layers_; }
  /// Returns a digest of the model and of the texts that losses are measured on. Valid after read().
  const std::string& measured_on() const { return measured_on_; }

  /// Returns the mean divergence of the model with one matrix in another type from itself, in nats per token. Measured
  /// over the first tokens of the model's own texts, or of the text that was read if there are none.
  Result<double> loss(std::pair<std::uint32_t, Role> tensor, FormatId type);
  /// Returns the same for the whole model as written to `path` with these options; a GGUF file is read for it.
  Result<double> loss(const Options& options, const std::string& path);

 private:
  Status read_layers();
  Result<double> divergence(Host& host);
  Result<double> divergence(const std::string& path);
  Status write(const LoadedModel& model, const Options& options);

  const LoadedModel& model_;
  std::string path_;
  Watch watch_;
  Workers workers_;
  Calibration calibration_;
  std::vector<Layer> layers_;
  std::string measured_on_;
  std::vector<std::uint32_t> probe_;  // tokens that losses are measured on
  std::optional<KeptRows> logits_;    // of the exact model over the probe; filled by the first run
};

}  // namespace qsf::convert
