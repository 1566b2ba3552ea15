// qsf-parity: compares two runs by their receipts or their logits. docs/reference/cli.md describes it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "native/cli/command_line.h"
#include "native/cli/input.h"
#include "native/cli/logits_file.h"
#include "native/cli/scores.h"
#include "native/cli/terminal.h"
#include "native/parity/receipts.h"
#include "native/sources/address.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/out_of_memory.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr int kSame = 0, kDifferent = 1, kFailed = 2;

constexpr std::array kManual{
    ManualSection{"Exit status", "0: the runs gave the same.\n\n1: they did not.\n\n2: they cannot be compared."},
    ManualSection{"See also", "qsf-run(1), and the installed documentation."}};

struct Options {
  std::string a, b;
  std::uint32_t vocab_size = 0;  // for rows without a header
  double tolerance = 0;          // of logits that count as the same
  bool tolerates = false;        // whether --tolerance was given
};

[[gnu::constructor(sys::kBeforeAll)]] void before_all() {
  sys::end_without_memory(kFailed, "qsf-parity: out_of_memory: the system refused memory that comparing needs\n");
}

int fail(const Error& error) {
  std::fprintf(stderr, "qsf-parity: %s: %s\n", std::string(error_name(error.code)).c_str(),
               printable(sentence_without_secrets(error.sentence)).c_str());
  return kFailed;
}

/// The cosine of two rows: 1 for two rows of zeros, 0 if one has only zeros.
struct Cosine {
  double dot = 0, a = 0, b = 0;

  void add(double x, double y) {
    dot += x * y;
    a += x * x;
    b += y * y;
  }
  double value() const { return a == 0 || b == 0 ? (a == b ? 1 : 0) : dot / (std::sqrt(a) * std::sqrt(b)); }
};

Result<Json> compare_logits(const LogitsReader& a, const LogitsReader& b, const Options& o) {
  const LogitsShape &of_a = a.shape(), &of_b = b.shape();
  if (of_a.vocab_size != of_b.vocab_size || a.rows() != b.rows()) {
    return make_error(ErrorCode::bad_input, "{} has {} rows of {} logits, {} has {} of {}: they cannot be compared",
                      o.a, a.rows(), of_a.vocab_size, o.b, b.rows(), of_b.vocab_size);
  }
  if (of_a.window != of_b.window || of_a.ids_crc != of_b.ids_crc) {
    return make_error(ErrorCode::bad_input, "{} and {} are of other tokens: they cannot be compared", o.a, o.b);
  }
  std::vector<float> row_a(of_a.vocab_size), row_b(of_a.vocab_size);
  Cosine cosine;
  Steps likeliest_ids;
  double largest = 0, least_cosine = 1;
  for (std::uint64_t row = 0; row < a.rows(); ++row) {
    QSF_TRY(a.read(row, row_a));
    QSF_TRY(b.read(row, row_b));
    Cosine of_row;
    for (std::size_t i = 0; i < row_a.size(); ++i) {
      const double x = double{row_a[i]}, y = double{row_b[i]};
      cosine.add(x, y);
      of_row.add(x, y);
      largest = std::max(largest, std::abs(x - y));
    }
    least_cosine = std::min(least_cosine, of_row.value());
    likeliest_ids.add(likeliest(row_a) == likeliest(row_b));
  }
  Json out{{"compared", "logits"}, {"equal", largest <= o.tolerance}};
  out["cosine_similarity"] = cosine.value();
  out["least_cosine_similarity"] = least_cosine;
  out["largest_difference"] = largest;
  likeliest_ids.tell(out);
  return out;
}

enum class Kind { receipt, saved, rows };

Result<Kind> kind_of(const std::string& path, bool rows) {
  const int file = sys::open_file(path);
  std::array<std::byte, 8> front{};
  const std::ptrdiff_t n = file < 0 ? -1 : sys::read_at(file, 0, front);
  const int why = errno;
  if (file >= 0) sys::close_file(file);
  if (n < 0) return make_error(ErrorCode::io_error, "cannot read {}: {}", path, std::strerror(why));
  if (is_logits_file(std::span(front).first(static_cast<std::size_t>(n)))) return Kind::saved;
  if (rows) return Kind::rows;
  if (n > 0 && front[0] == std::byte{'{'}) return Kind::receipt;
  return make_error(ErrorCode::bad_input,
                    "{} is neither a receipt nor logits of --save-logits (rows of --logits need --vocabulary)", path);
}

Result<Json> compare(const Options& o) {
  QSF_LET(kind_a, kind_of(o.a, o.vocab_size != 0));
  QSF_LET(kind_b, kind_of(o.b, o.vocab_size != 0));
  if (kind_a != kind_b) return make_error(ErrorCode::bad_input, "{} and {} are files of two kinds", o.a, o.b);
  if (kind_a == Kind::receipt && o.tolerates) {
    return make_error(ErrorCode::bad_argument, "--tolerance is for logits, and {} is a receipt", o.a);
  }
  if (kind_a == Kind::saved && o.vocab_size != 0) {
    return make_error(ErrorCode::bad_argument, "--vocabulary is for rows of --logits, and {} states its own", o.a);
  }
  if (kind_a == Kind::receipt) {
    QSF_LET(text_a, read_text(o.a, kMaxReceiptBytes, "a receipt"));
    QSF_LET(text_b, read_text(o.b, kMaxReceiptBytes, "a receipt"));
    QSF_LET(a, read_receipt(text_a, o.a));
    QSF_LET(b, read_receipt(text_b, o.b));
    return compare_receipts(a, b);
  }
  const auto open = [&](const std::string& path) {
    return kind_a == Kind::saved ? LogitsReader::open(path) : LogitsReader::open_rows(path, o.vocab_size);
  };
  QSF_LET(a, open(o.a));
  QSF_LET(b, open(o.b));
  return compare_logits(a, b, o);
}

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Compares two runs of qsf-run by their receipts or their logits.", "qsf-parity");
  app.option_defaults()->always_capture_default();
  app.allow_windows_style_options(false);  // so that a path may begin with a slash everywhere
  app.add_option("A", o.a, "A receipt, or logits");
  app.add_option("B", o.b, "Another of the same kind");
  app.add_option("--vocabulary", o.vocab_size, "Logits of a row, for files that --logits wrote")
      ->check(natural<std::uint32_t>())
      ->check(CLI::Range(1u, ~0u));
  const CLI::Option* const tolerance =
      app.add_option("--tolerance", o.tolerance, "Largest difference of two logits that are the same")
          ->check(real())
          ->check(CLI::NonNegativeNumber);
  const Parsed parsed = parse(app, argc, argv, {.manual = kManual});
  if (parsed.what == Parsed::What::told) return 0;
  if (parsed.what == Parsed::What::mistake) return fail(make_error(ErrorCode::bad_argument, "{}", parsed.sentence));
  if (o.b.empty()) return fail(make_error(ErrorCode::bad_argument, "two files are needed, A and B (see --help)"));
  o.tolerates = tolerance->count() > 0;
  const Result<Json> compared = compare(o);
  if (!compared) return fail(compared.error());
  std::printf("%s\n", compared->dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  if (std::fflush(stdout) != 0) {
    return fail(make_error(ErrorCode::io_error, "cannot write standard output: {}", std::strerror(errno)));
  }
  return compared->at("equal").get<bool>() ? kSame : kDifferent;
}

}  // namespace
}  // namespace qsf::run

int main(int argc, char** argv) { return qsf::sys::run_program(argc, argv, qsf::run::main); }
