#include "converter/write/gguf/write.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "converter/plan/plan.h"
#include "converter/types/gguf_form.h"
#include "converter/types/gguf_keys.h"
#include "converter/types/written_type.h"
#include "converter/write/gguf/describe.h"
#include "converter/write/gguf/tensors.h"
#include "qsf/base/align.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kPieceBytes = 64 << 10;  // about the bytes of weights in a step

Error cannot_say(std::string_view what) {
  return make_error(ErrorCode::unsupported,
                    "GGUF cannot describe this model: the model that is read back differs in {}", what);
}

bool near(double a, double b) { return a == b || std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

/// Returns the kind with defaults in place of zeros.
LayerKind spelt_out(LayerKind kind) {
  if (kind.attention_scale == 0) kind.attention_scale = 1 / std::sqrt(static_cast<float>(kind.head_dim));
  return kind;
}

/// Keys of layers.def that GGUF has no word for. They are left out with a warning.
struct LeftOut {
  std::string_view key, warning;
};
constexpr std::array kLeftOut{
    LeftOut{"final_epsilon", "GGUF has one epsilon for all norms: the last norm's own is left out"},
};

/// Returns the name of the first key of layers.def that differs; empty if none does.
std::string_view difference(const LayerTableBuilder& a, const LayerTableBuilder& b,
                            std::vector<std::string>& warnings) {
  std::string_view out;
  const auto compare = [&](const LayerKey& key, auto one, auto other) {
    if (near(static_cast<double>(one), static_cast<double>(other))) return;
    const auto* const left_out = std::ranges::find(kLeftOut, key.name, &LeftOut::key);
    if (left_out != kLeftOut.end()) {
      warnings.emplace_back(left_out->warning);
    } else if (out.empty()) {
      out = key.name;
    }
  };
  visit_model_keys(a.model, [&](const LayerKey& key, auto one) {
    visit_model_keys(b.model, [&](const LayerKey& same, auto other) {
      if (same.name == key.name) compare(key, one, other);
    });
  });
  for (std::size_t layer = 0; layer < a.of_layer.size() && layer < b.of_layer.size(); ++layer) {
    const LayerKind kind = spelt_out(a.kinds[a.of_layer[layer]]), other_kind = spelt_out(b.kinds[b.of_layer[layer]]);
    visit_layer_keys(kind, [&](const LayerKey& key, auto one) {
      visit_layer_keys(other_kind, [&](const LayerKey& same, auto other) {
        if (same.name == key.name) compare(key, one, other);
      });
    });
  }
  return out;
}

/// Returns the parts of a tokenizer that can be compared, without the data of unused tokens, which GGUF does not store.
Result<std::vector<std::byte>> comparable(TokenizerSource source, bool normalizer) {
  if (!normalizer) source.normalizer.clear();
  for (TokenizerSource::Token& token : source.tokens) {
    if (token.type == TokenType::unused) token = {{}, 0, TokenType::unused};
    if (source.kind == TokenizerKind::byte_bpe) token.score = 0;
  }
  return build_tokenizer(source);
}

Status same_tokenizer(const LoadedModel& model, const LoadedModel& back, std::vector<std::string>& warnings) {
  if (!model.tokenizer) return {};
  if (!back.tokenizer) return cannot_say("the tokenizer");
  for (const bool normalizer : {true, false}) {
    QSF_LET(one, comparable(*model.tokenizer, normalizer));
    QSF_LET(other, comparable(*back.tokenizer, normalizer));
    if (one != other) continue;
    if (!normalizer) {
      warnings.push_back(
          "GGUF does not say how the tokenizer normalizes texts: other programs may cut some differently");
    }
    return {};
  }
  return cannot_say("the tokenizer");
}

Status same_model(const LoadedModel& model, const FileSpec& file, const LayerTableBuilder& layers,
                  const LoadedModel& back, std::vector<std::string>& warnings) {
  Options options;
  options.gguf = true;
  for (const TensorSpec& tensor : file.tensors) {  // these are read as floats
    if (find_format(tensor.format) == nullptr) options.types[{tensor.stage, tensor.role}] = tensor.format;
  }
  QSF_LET(other, plan_file(back, options));
  QSF_LET(other_layers, layers_of_file(back));
  const Header &a = file.header, &b = other.header;
  std::string_view size;
  visit_sizes(a, [&](const LayerKey& key, std::uint32_t one) {
    visit_sizes(b, [&](const LayerKey& same, std::uint32_t two) {
      if (key.name == same.name && one != two && size.empty()) size = key.name;
    });
  });
  if (!size.empty()) return cannot_say(size);
  if (const std::string_view key = difference(layers, other_layers, warnings); !key.empty()) return cannot_say(key);
  if ((a.flags & kFlagTied) != (b.flags & kFlagTied)) return cannot_say("the head");
  if (a.bos != b.bos || a.eos != b.eos) return cannot_say("the begin and end tokens");
  if (!std::ranges::equal(file.rope_divisors, other.rope_divisors, near)) return cannot_say("RoPE's scaling");
  if (back.interleaved_rope != model.recipe->gguf_interleaved) return cannot_say("the order of rows");
  const auto same_tensor = [](const TensorSpec& one, const TensorSpec& two) {
    return one.stage == two.stage && one.role == two.role && one.format == two.format && one.rows == two.rows &&
           one.cols == two.cols;
  };
  if (!std::ranges::equal(file.tensors, other.tensors, same_tensor)) return cannot_say("the tensors");
  std::vector<std::uint32_t> ends = model.config.all_eos, known = back.config.all_eos;
  std::ranges::sort(ends);
  std::ranges::sort(known);
  if (!std::ranges::includes(known, ends)) {
    warnings.push_back("GGUF does not say all tokens that end a text: some are left out");
  }
  return same_tokenizer(model, back, warnings);
}

/// Returns llama.cpp's number of files of the type that most weights have; empty if it has none.
std::optional<std::uint32_t> usual_file_type(std::span<const GgufTensor> tensors) {
  std::map<FormatId, std::uint64_t> weights;
  for (const GgufTensor& tensor : tensors) weights[tensor.format] += tensor.rows * tensor.cols;
  const auto most = std::ranges::max_element(weights, {}, [](const auto& each) { return each.second; });
  return most == weights.end() ? std::nullopt : ggml_file_type(most->first);
}

}  // namespace

struct GgufWriter::Work {
  FileSpec file;
  FileSink sink;
  std::vector<GgufTensor> tensors;
  std::vector<std::byte> front;        // with the tensors of frequencies and of scales
  std::vector<std::uint64_t> offsets;  // of tensors, in the file
  std::uint64_t size = 0, done = 0, total = 0;
  bool began = false;
  std::size_t tensor = 0, part = 0;
  std::uint32_t row = 0;
  std::uint64_t at = 0;
  Status status;

  Status next();
};

bool names_gguf(std::string_view path) { return lowered(path).ends_with(".gguf"); }

GgufWriter::GgufWriter(std::unique_ptr<Work> work) : work_(std::move(work)) {}
GgufWriter::GgufWriter(GgufWriter&&) noexcept = default;
GgufWriter::~GgufWriter() = default;

Result<GgufWriter> GgufWriter::plan(const LoadedModel& model, FileSpec file, FileSink sink,
                                    std::optional<std::uint32_t> file_type, std::vector<std::string>& warnings,
                                    ReadGguf read) {
  const Recipe& recipe = *model.recipe;
  QSF_LET(layers, layers_of_file(model));
  if (layers.model.score != 0) {
    return make_error(ErrorCode::unsupported,
                      "the model is a reranker, whose score is written to .qsf files only: OUT must be a .qsf file");
  }
  if (recipe.gguf_name.empty()) {
    return make_error(ErrorCode::unsupported, "the recipe {:.60} has no GGUF name for such models", recipe.name);
  }
  auto work = std::make_unique<Work>();
  work->file = std::move(file);
  work->sink = std::move(sink);
  QSF_LET(tensors, gguf_tensors(recipe, work->file, layers));
  work->tensors = std::move(tensors);

  GgufFront front;
  describe_model(model, work->file.header, layers, front);
  QSF_TRY(describe_tokenizer(model, front));
  const auto quantized = [](const GgufTensor& tensor) { return format_of(tensor.format).quantized(); };
  if (std::ranges::any_of(work->tensors, quantized)) front.number(std::string(gguf_key::kQuantization), 2u);
  if (!file_type) file_type = usual_file_type(work->tensors);
  if (file_type) front.number(std::string(gguf_key::kFileType), *file_type);
  const std::vector<float> frequencies = frequencies_to_write(model.config);
  std::vector<std::byte> made;  // tensors of few numbers, which are written with the front
  const auto add_made = [&](std::string_view name, std::span<const float> values) {
    const std::uint64_t n = values.size();
    front.tensor(name, {&n, 1}, *ggml_number(FormatId::f32), made.size());
    const std::span<const std::byte> bytes = std::as_bytes(values);
    made.insert(made.end(), bytes.begin(), bytes.end());
    made.resize(align_up(made.size(), kGgufAlignment));
  };
  if (layers.model.long_rope_from != 0) {
    const std::span<const float> both(model.config.rope_divisors);  // [2, dims / 2]
    add_made(gguf_key::kShortFactors, both.first(both.size() / 2));
    add_made(gguf_key::kLongFactors, both.subspan(both.size() / 2));
  } else if (!frequencies.empty()) {
    add_made(gguf_key::kRopeFrequencies, frequencies);
  }
  for (const GgufTensor& tensor : work->tensors) {
    if (!tensor.scales.empty()) add_made(tensor.scales_name, tensor.scales);
  }
  std::uint64_t offset = made.size();
  for (const GgufTensor& tensor : work->tensors) {
    front.tensor(tensor.name, tensor.shape, *ggml_number(tensor.format), offset);
    work->offsets.push_back(offset);
    const std::uint64_t bytes = tensor.rows * row_bytes(format_of(tensor.format), tensor.cols);
    work->total += bytes;
    offset = align_up(offset + bytes, kGgufAlignment);
  }
  work->front = front.whole();
  const std::uint64_t begin = work->front.size();
  for (std::uint64_t& each : work->offsets) each += begin;
  work->size = begin + offset;
  work->front.insert(work->front.end(), made.begin(), made.end());

  // The front is read back before anything is written. Opening reads none of the weights' bytes.
  ModelLocation place;
  place.name = model.config.name;
  place.file = Input{"the GGUF file", work->size,
                     [bytes = std::span<const std::byte>(work->front)](std::uint64_t from, std::span<std::byte> into) {
                       std::ranges::fill(into, std::byte{0});
                       const std::span<const std::byte> rest =
                           bytes.subspan(std::min<std::uint64_t>(from, bytes.size()));
                       std::ranges::copy(rest.first(std::min(rest.size(), into.size())), into.begin());
                       return Status();
                     }};
  QSF_LET(back, read(place, model.tokenizer.has_value()));
  QSF_TRY(same_model(model, work->file, layers, back, warnings));
  return GgufWriter(std::move(work));
}

/// Writes the front, or rows of the tensor that is being written.
Status GgufWriter::Work::next() {
  if (!began) {
    began = true;
    return sink.write_at(0, front);
  }
  const GgufTensor& from = tensors[tensor];
  const std::uint64_t row_size = row_bytes(format_of(from.format), from.cols);
  const std::uint32_t rows = from.parts[part].tensor->rows;
  const auto fit = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kPieceBytes / row_size));
  const std::uint32_t n = std::min(fit, rows - row);
  std::vector<std::byte> bytes(n * row_size);
  QSF_TRY(from.read_rows(part, row, n, bytes));
  if (part == 0 && row == 0) at = offsets[tensor];
  done += bytes.size();
  row += n;
  const std::uint64_t to = at;
  at += bytes.size();
  if (row == rows) {
    row = 0;
    ++part;
  }
  if (part == from.parts.size()) {
    part = 0;
    const std::uint64_t end = ++tensor < tensors.size() ? offsets[tensor] : size;
    bytes.resize(bytes.size() + (end - at));  // up to the start of the next
  }
  return sink.write_at(to, bytes);
}

Result<GgufWriter::Step> GgufWriter::step() {
  if (!work_->status) return work_->status.error();
  if (work_->began && work_->tensor == work_->tensors.size()) return Step::done;
  work_->status = work_->next();
  if (!work_->status) return work_->status.error();
  return Step::working;
}

GgufWriter::Progress GgufWriter::progress() const { return {work_->done, work_->total}; }
std::uint64_t GgufWriter::file_size() const { return work_->size; }

}  // namespace qsf::convert
