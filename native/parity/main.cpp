// qsf-parity: compares two runs by their receipts or their logits. docs/reference/cli.md describes it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "native/cli/command_line.h"
#include "native/cli/input.h"
#include "native/cli/logits_file.h"
#include "native/cli/scores.h"
#include "native/cli/terminal.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/out_of_memory.h"
#include "system/program.h"

namespace qsf::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSame = 0, kDifferent = 1, kFailed = 2;
constexpr std::size_t kMaxReceiptBytes = 64u << 20;

constexpr std::array kManual{
    ManualSection{"Exit status", "0: the runs gave the same.\n\n1: they did not.\n\n2: they cannot be compared."},
    ManualSection{"See also", "qsf-run(1), and the installed documentation."}};

struct Options {
  std::string a, b;
  std::uint32_t vocab_size = 0;  // for rows without a header
  double tolerance = 0;          // of logits that count as the same
};

[[gnu::constructor(sys::kBeforeAll)]] void before_all() {
  sys::end_without_memory(kFailed, "qsf-parity: out_of_memory: the system refused memory that comparing needs\n");
}

int fail(const Error& error) {
  std::fprintf(stderr, "qsf-parity: %s: %s\n", std::string(error_name(error.code)).c_str(),
               printable(error.sentence).c_str());
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

/// The comparison of two lists, step by step.
struct Steps {
  std::uint64_t n = 0, same = 0;
  std::optional<std::uint64_t> first_divergence;

  void add(bool equal) {
    if (equal) ++same;
    if (!equal && !first_divergence) first_divergence = n;
    ++n;
  }
  void tell(Json& to) const {
    to["steps"] = n;
    to["exact_match_rate"] = n == 0 ? 1.0 : static_cast<double>(same) / static_cast<double>(n);
    to["first_divergence_step"] = first_divergence ? Json(*first_divergence) : Json();
  }
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

Result<Json> read_receipt(const std::string& path) {
  QSF_LET(text, read_text(path, kMaxReceiptBytes, "a receipt"));
  Json receipt = Json::parse(text, nullptr, false);
  // A receipt is of one generation or of a measured text.
  const char* ids = receipt.is_object() && receipt.contains("ids_crc") ? "ids_crc" : "generated_tokens";
  if (!receipt.is_object() || !receipt.contains("program") || !receipt.contains("logits_hash") ||
      !receipt.contains(ids)) {
    return make_error(ErrorCode::bad_input, "{} is no receipt of qsf-run", path);
  }
  return receipt;
}

/// Returns the ids in a receipt's field, none if it has no such field; bad_input if they are not ids.
Result<std::vector<std::uint64_t>> ids_of(const Json& receipt, const char* field, const std::string& path) {
  std::vector<std::uint64_t> ids;
  const auto at = receipt.find(field);
  if (at == receipt.end()) return ids;
  const bool whole = at->is_array() && std::ranges::all_of(*at, [](const Json& id) { return id.is_number_unsigned(); });
  if (!whole) return make_error(ErrorCode::bad_input, "{} has a field {} that is no list of token ids", path, field);
  for (const Json& id : *at) ids.push_back(id.get<std::uint64_t>());
  return ids;
}

/// Returns a field of a receipt, null if there is none.
Json field(const Json& receipt, const char* name) {
  const auto at = receipt.find(name);
  return at == receipt.end() ? Json() : *at;
}

Result<Json> compare_receipts(const Json& a, const Json& b, const Options& o) {
  QSF_LET(ids_a, ids_of(a, "generated_tokens", o.a));
  QSF_LET(ids_b, ids_of(b, "generated_tokens", o.b));
  QSF_TRY(ids_of(a, "prompt_tokens", o.a));
  QSF_TRY(ids_of(b, "prompt_tokens", o.b));
  Steps steps;
  for (std::size_t i = 0; i < std::max(ids_a.size(), ids_b.size()); ++i) {
    steps.add(i < ids_a.size() && i < ids_b.size() && ids_a[i] == ids_b[i]);
  }
  const auto same = [&](const char* name) { return field(a, name) == field(b, name); };
  const bool same_prompt = same("prompt_tokens") && same("ids_crc") && same("window") && same("windows");
  const bool same_logits = same("logits_hash");
  Json out{{"compared", "receipts"}, {"equal", same_prompt && same_logits && !steps.first_divergence}};
  out["same_model"] = field(field(a, "model"), "hash") == field(field(b, "model"), "hash");
  out["same_prompt"] = same_prompt;
  out["same_logits"] = same_logits;
  steps.tell(out);
  const Json of_a = field(a, "perplexity"), of_b = field(b, "perplexity");
  if (of_a.is_number() && of_b.is_number()) {
    out["perplexity_difference"] = of_b.get<double>() - of_a.get<double>();
  }
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
  if (kind_a == Kind::receipt) {
    QSF_LET(a, read_receipt(o.a));
    QSF_LET(b, read_receipt(o.b));
    return compare_receipts(a, b, o);
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
  app.add_option("--tolerance", o.tolerance, "Largest difference of two logits that are the same")
      ->check(real())
      ->check(CLI::NonNegativeNumber);
  const Parsed parsed = parse(app, argc, argv, {.manual = kManual});
  if (parsed.what == Parsed::What::told) return 0;
  if (parsed.what == Parsed::What::mistake) return fail(make_error(ErrorCode::bad_argument, "{}", parsed.sentence));
  if (o.b.empty()) return fail(make_error(ErrorCode::bad_argument, "two files are needed, A and B (see --help)"));
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
