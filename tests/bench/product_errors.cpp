// product-errors MODEL TEXT FILE...: how far the products of FILEs, each MODEL in other types, are from MODEL's over
// the columns x that enter them when MODEL reads TEXT. Of every matrix a line: FILE, section, name, the sum of |(W -
// W') x|^2, that of |W x|^2. FILEs are of any kind that can be converted; of inputs beyond 1024 columns, blocks count
// by themselves.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "converter/calibrate.h"
#include "converter/inputs.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"

namespace qsf::test {
namespace {

using convert::Calibration;
using convert::Moments;

/// A model's matrices as floats, in the order of rows that files have.
Result<FileSource> floats_of(const convert::ModelSource& model) {
  convert::Options options;
  options.matrices = FormatId::f32;
  return convert::plan_file(model, options);
}

Result<std::vector<float>> rows_of(const TensorSource& tensor) {
  std::vector<float> rows(std::size_t{tensor.rows} * tensor.cols);
  QSF_TRY(tensor.rows_of(0, tensor.rows, std::as_writable_bytes(std::span(rows))));
  return rows;
}

/// The sum of |v x|^2 over the rows v and the columns x that were seen.
double squares(const Moments& moments, std::span<const float> rows) {
  double sum = 0;
  for (; !rows.empty(); rows = rows.subspan(moments.cols)) {
    for (std::uint32_t i = 0; i < moments.cols; ++i) {
      const double* const with = &moments.sums[std::size_t{i} * moments.width];
      const std::uint32_t begin = i / moments.width * moments.width;
      double before = 0.5 * with[i - begin] * double{rows[i]};
      for (std::uint32_t j = begin; j < i; ++j) before += with[j - begin] * double{rows[j]};
      sum += 2 * before * double{rows[i]};
    }
  }
  return sum;
}

Status print_errors(const FileSource& exact, const Calibration& calibration, const std::string& path) {
  QSF_LET(model, convert::open_model(path, false));
  QSF_LET(file, floats_of(model));
  for (const TensorSource& tensor : file.tensors) {
    const auto seen = calibration.find({tensor.section, tensor.role});
    if (seen == calibration.end()) continue;
    const auto of = std::ranges::find_if(exact.tensors, [&](const TensorSource& other) {
      return other.section == tensor.section && other.role == tensor.role;
    });
    if (of == exact.tensors.end() || of->rows != tensor.rows || of->cols != tensor.cols) {
      return make_error(ErrorCode::bad_input, "{:.140} is not the same model", path);
    }
    QSF_LET(weights, rows_of(*of));
    QSF_LET(errors, rows_of(tensor));
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] -= weights[i];
    std::printf("%s\t%u\t%s\t%.9g\t%.9g\n", path.c_str(), tensor.section, std::string(role_name(tensor.role)).c_str(),
                squares(seen->second, errors), squares(seen->second, weights));
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
