// product-errors MODEL TEXT FILE...: how far the products of FILEs, each MODEL in other types, are from MODEL's over
// the columns x that enter them when MODEL reads TEXT. Of every matrix a line: FILE, stage, name, the sum of |(W -
// W') x|^2, that of |W x|^2, its bytes in a QSF file, its weights. FILEs are QSF files or of any kind that can be
// converted; of inputs beyond 1024 columns, blocks count by themselves.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/cli/inspect.h"
#include "converter/files/local_files.h"
#include "converter/quantize/calibrate.h"
#include "converter/readers/inputs.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/model/observed.h"

namespace qsf::test {
namespace {

using convert::Calibration;
using convert::Moments;

/// A model's matrices as floats, in the order of rows that files have.
Result<FileSpec> floats_of(const convert::LoadedModel& model) {
  convert::Options options;
  options.matrices = FormatId::f32;
  return convert::plan_file(model, options);
}

struct Matrix {
  std::uint32_t stage;
  Role role;
  std::uint32_t rows, cols;
  std::vector<float> weights;
  std::size_t bytes = 0;
};

/// A tensor of a QSF file, whose segments are put together.
Result<Matrix> matrix_of(const convert::Input& file, const convert::Tables& tables, const TensorEntry& tensor) {
  const Format& f = *find_format(tensor.format);  // as read_tables has checked
  std::vector<std::byte> bytes(tensor_bytes(f, tensor.layout, tensor.rows, tensor.cols));
  for (std::uint32_t i = tensor.first_segment; i < tensor.first_segment + tensor.n_segments; ++i) {
    QSF_LET(raw, convert::read_segment(file, tables, i));
    const std::uint64_t begin = std::max<std::uint64_t>(tables.segments[i].raw_begin, tensor.raw_offset);
    const std::uint64_t end =
        std::min<std::uint64_t>(tables.segments[i].raw_begin + raw.size(), tensor.raw_offset + bytes.size());
    std::copy_n(&raw[begin - tables.segments[i].raw_begin], end - begin, &bytes[begin - tensor.raw_offset]);
  }
  Matrix out{tensor.stage, tensor.role, tensor.rows, tensor.cols, {}, bytes.size()};
  out.weights.resize(std::size_t{tensor.rows} * tensor.cols);
  const std::uint32_t n = strip_rows(tensor.layout);
  const std::size_t strip = tensor_bytes(f, tensor.layout, n, tensor.cols);
  for (std::uint32_t row = 0; row < tensor.rows; ++row) {
    const auto from = std::span<const std::byte>(bytes).subspan(row / n * strip, strip);
    const auto to = std::span(out.weights).subspan(std::size_t{row} * tensor.cols, tensor.cols);
    tensor.layout == Layout::tiles ? dequantize_tile_row(f, from, row % n, to) : dequantize_row(f, from, to);
  }
  return out;
}

Result<std::vector<float>> rows_of(const TensorSpec& tensor) {
  std::vector<float> rows(std::size_t{tensor.rows} * tensor.cols);
  QSF_TRY(tensor.rows_of(0, tensor.rows, std::as_writable_bytes(std::span(rows))));
  return rows;
}

/// The sum of |v x|^2 over the rows v and the columns x that were seen.
double squares(const Moments& moments, std::span<const float> rows) {
  double sum = 0;
  for (; !rows.empty(); rows = rows.subspan(moments.cols)) {
    for (std::uint32_t i = 0; i < moments.cols; ++i) {
      const float* const with = &(*moments.sums)[observed_row(i, moments.width)];
      const std::uint32_t begin = i / moments.width * moments.width;
      double before = 0.5 * double{with[i - begin]} * double{rows[i]};
      for (std::uint32_t j = begin; j < i; ++j) before += double{with[j - begin]} * double{rows[j]};
      sum += 2 * before * double{rows[i]};
    }
  }
  return sum;
}

Result<std::vector<Matrix>> matrices_of(const std::string& path) {
  std::vector<Matrix> out;
  if (path.ends_with(".qsf")) {
    convert::LocalFiles files;
    QSF_LET(file, files.open(path));
    QSF_LET(tables, convert::read_tables(file));
    for (const TensorEntry& tensor : tables.tensors) {
      QSF_LET(matrix, matrix_of(file, tables, tensor));
      out.push_back(std::move(matrix));
    }
    return out;
  }
  QSF_LET(model, convert::open_model(path, false));
  QSF_LET(file, floats_of(model));
  for (const TensorSpec& tensor : file.tensors) {
    QSF_LET(weights, rows_of(tensor));
    out.push_back({tensor.stage, tensor.role, tensor.rows, tensor.cols, std::move(weights)});
  }
  return out;
}

Status print_errors(const FileSpec& exact, const Calibration& calibration, const std::string& path) {
  QSF_LET(matrices, matrices_of(path));
  for (Matrix& matrix : matrices) {
    const auto seen = calibration.find({matrix.stage, matrix.role});
    if (seen == calibration.end()) continue;
    const auto of = std::ranges::find_if(exact.tensors, [&](const TensorSpec& other) {
      return other.stage == matrix.stage && other.role == matrix.role;
    });
    if (of == exact.tensors.end() || of->rows != matrix.rows || of->cols != matrix.cols) {
      return make_error(ErrorCode::bad_input, "{:.140} is not the same model", path);
    }
    QSF_LET(weights, rows_of(*of));
    for (std::size_t i = 0; i < weights.size(); ++i) matrix.weights[i] -= weights[i];
    std::printf("%s\t%u\t%s\t%.9g\t%.9g\t%zu\t%zu\n", path.c_str(), matrix.stage,
                std::string(role_name(matrix.role)).c_str(), squares(seen->second, matrix.weights),
                squares(seen->second, weights), matrix.bytes, weights.size());
  }
  return {};
}

Status print_all(std::span<char* const> arguments) {
  const std::string path = arguments[0];
  QSF_LET(model, convert::open_model(path));
  const convert::Watch watch = [](std::string_view, std::uint64_t, std::uint64_t) { return true; };
  convert::Calibrator calibrator(model, arguments[2], watch);
  QSF_TRY(calibrator.read(arguments[1], 0));
  QSF_LET(exact, floats_of(model));
  for (const char* const file : arguments.subspan(2)) QSF_TRY(print_errors(exact, calibrator.calibration(), file));
  return {};
}

}  // namespace
}  // namespace qsf::test

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: product-errors MODEL TEXT FILE...\n");
    return 2;
  }
  const qsf::Status status = qsf::test::print_all(std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
  if (status) return 0;
  std::fprintf(stderr, "product-errors: %s\n", status.error().sentence);
  return 1;
}
