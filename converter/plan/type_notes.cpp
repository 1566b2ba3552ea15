#include "converter/plan/type_notes.h"

#include <array>
#include <cstdio>

#include "converter/types/written_type.h"

namespace qsf::convert {
namespace {

std::string matrices(std::size_t n) { return std::to_string(n) + (n == 1 ? " matrix" : " matrices"); }

/// A matrix of i2_s has one scale, so that GGML's ternary types store the same codes.
bool keeps_codes(FormatId source, const Format& target) {
  return source == kScaledTernary && target.rounding == Rounding::ggml_ternary;
}

}  // namespace

void TypeNotes::add(const LoadedTensor& from, FormatId wanted, FormatId target, std::uint64_t rows,
                    std::uint64_t cols) {
  const auto count = [](Note& note, const std::string& example) {
    if (note.n++ == 0) note.first = example;
  };
  const FormatId source = from.format;
  const Format &is = format_of(source), &becomes = format_of(target);
  if (is.quantized() && becomes.quantized() && source != target && !keeps_codes(source, becomes)) {
    count(rounded_again_, std::string(is.name) + " to " + std::string(becomes.name));
  }
  if (wanted != target) {
    count(narrowed_, std::string(becomes.name) + " instead of " + std::string(format_of(wanted).name) +
                         " with rows of " + std::to_string(cols) + " weights");
  }
  if (cols % becomes.block == 0) return;
  count(padded_,
        std::string(becomes.name) + " (" + std::to_string(becomes.block) + " weights) with " + std::to_string(cols));
  bytes_ += static_cast<double>(rows * cols) / becomes.block * becomes.block_bytes;
  padded_bytes_ += static_cast<double>(rows * row_bytes(becomes, cols));
}

std::vector<std::string> TypeNotes::warnings() const {
  std::vector<std::string> out;
  if (rounded_again_.n != 0) {
    out.push_back(matrices(rounded_again_.n) + " rounded a second time, such as from " + rounded_again_.first +
                  ": converting the model's float weights loses less");
  }
  if (padded_.n != 0) {
    std::array<char, 32> times{};
    std::snprintf(times.data(), times.size(), "%.2f", padded_bytes_ / bytes_);
    out.push_back(matrices(padded_.n) + " with rows that are no whole blocks, such as of " + padded_.first +
                  ": the last block is filled up, which takes " + times.data() + " times the bytes");
  }
  if (narrowed_.n != 0) {
    out.push_back(matrices(narrowed_.n) + " with rows that are no whole blocks, such as " + narrowed_.first +
                  ": they get another type, as GGUF has whole blocks only");
  }
  return out;
}

}  // namespace qsf::convert
