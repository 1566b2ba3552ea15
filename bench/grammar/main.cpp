// qsf-bench-grammar: measures grammars over a folder of JSON files, each with a schema and instances that are valid or
// not, as MaskBench has them. docs/reference/grammars.md describes it.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qsf/grammar/grammar.h"

namespace {

using Json = nlohmann::ordered_json;
using qsf::grammar::Grammar;
using qsf::grammar::TokenTrie;

/// Returns the processor's time since, which other programs on the machine hardly change.
double microseconds(std::clock_t since) { return 1e6 * static_cast<double>(std::clock() - since) / CLOCKS_PER_SEC; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0, n = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) break;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    n += 6;
    if (n >= 8) {
      n -= 8;
      out += static_cast<char>(bits >> n & 255);
    }
  }
  return out;
}

/// Reads a vocabulary in tiktoken's form: a token in base64 and its id in each line.
std::vector<std::string> read_vocabulary(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> tokens;
  std::string token;
  std::size_t id = 0;
  while (in >> token >> id) {
    if (id >= tokens.size() && id < TokenTrie::kMaxTokens) tokens.resize(id + 1);
    if (id < tokens.size()) tokens[id] = from_base64(token);
  }
  return tokens;
}

/// Writes a value as Python's json.dumps does, with a space after each comma and colon.
void write(const Json& value, std::string& out) {
  const auto text = [](const Json& v) { return v.dump(-1, ' ', false, Json::error_handler_t::replace); };
  if (value.is_number_float()) {
    // As Python: without an exponent between 1e-4 and 1e16.
    std::array<char, 400> digits;
    const double number = value.get<double>(), size = std::abs(number);
    const bool fixed = number == 0 || (size >= 1e-4 && size < 1e16);
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                            fixed ? std::chars_format::fixed : std::chars_format::scientific);
    const std::string_view made(digits.data(), static_cast<std::size_t>(end - digits.data()));
    out += made;
    if (fixed && made.find('.') == made.npos) out += ".0";
    return;
  }
  if (!value.is_structured()) {
    out += text(value);
    return;
  }
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& item : value.items()) {
    if (!first) out += ", ";
    first = false;
    if (value.is_object()) out += text(Json(item.key())) + ": ";
    write(item.value(), out);
  }
  out += value.is_object() ? '}' : ']';
}

/// Returns the text's tokens: each time the longest that fits.
std::vector<std::uint32_t> tokenize(std::string_view text, const TokenTrie& trie) {
  std::vector<std::uint32_t> ids;
  const auto nodes = trie.nodes();
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t best = TokenTrie::kNoToken;
    std::size_t length = 0;
    std::size_t begin = 0, end = nodes.size();
    for (std::size_t n = at; n < text.size(); ++n) {
      std::size_t i = begin;
      while (i < end && nodes[i].byte != static_cast<std::uint8_t>(text[n])) i += nodes[i].size;
      if (i >= end) break;
      if (nodes[i].token != TokenTrie::kNoToken) {
        best = nodes[i].token;
        length = n + 1 - at;
      }
      begin = i + 1;
      end = i + nodes[i].size;
    }
    if (length == 0) return {};
    ids.push_back(best);
    at += length;
  }
  return ids;
}

struct Totals {
  std::size_t schemas = 0, passing = 0, refused = 0, valid_refused = 0, invalid_accepted = 0, failures = 0, memory = 0;
  std::vector<double> masks, compiles;
  std::map<std::string, std::size_t> reasons;
};

double at(const std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * sorted.size()))];
}
double average(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void print(const char* name, std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  std::printf("%-8s average %9.1f us, 50 %% %9.1f us, 95 %% %9.1f us, 99 %% %9.1f us, most %9.1f us (%zu)\n", name,
              average(values), at(values, 0.5), at(values, 0.95), at(values, 0.99), values.empty() ? 0 : values.back(),
              values.size());
}

class Bench {
 public:
  Bench(const std::vector<std::string>& tokens, const TokenTrie& trie)
      : tokens_(tokens), trie_(trie), memory_(Grammar::kMemory), bits_(qsf::grammar::mask_words(tokens.size())) {}

  void run(const std::filesystem::path& path) {
    const Json file = Json::parse(read_file(path), nullptr, false);
    if (!file.is_object() || !file.contains("schema")) return;
    ++totals.schemas;
    name_ = path.filename().string();
    const std::string schema = file["schema"].dump();
    const std::clock_t began = std::clock();
    qsf::Result<Grammar> grammar = Grammar::json_schema(schema, memory_);
    totals.compiles.push_back(microseconds(began));
    if (verbose && totals.compiles.back() > 3000) {
      std::printf("slow: %s: %.0f us\n", path.filename().c_str(), totals.compiles.back());
    }
    if (!grammar) {
      ++totals.refused;
      const std::string why = grammar.error().sentence;
      ++totals.reasons[why.substr(0, 90)];
      if (verbose) std::printf("refused: %s: %s\n", path.filename().c_str(), why.c_str());
      return;
    }
    bool passes = true;
    for (const Json& test : file.value("tests", Json::array())) {
      std::string text;
      write(test["data"], text);
      const bool valid = test["valid"].get<bool>();
      grammar->reset();
      const std::size_t failures = totals.failures;
      std::size_t reached = 0;
      const bool accepted = follow(*grammar, text, valid, reached);
      passes = passes && accepted == valid && failures == totals.failures;
      if (accepted == valid) continue;
      ++(valid ? totals.valid_refused : totals.invalid_accepted);
      if (verbose) {
        std::printf("%s: %s: byte %zu of %s\n", valid ? "valid refused" : "invalid accepted", path.filename().c_str(),
                    reached, text.substr(0, std::min<std::size_t>(text.size(), 3000)).c_str());
      }
    }
    totals.passing += passes ? 1 : 0;
    totals.memory = std::max(totals.memory, grammar->used());
  }

  Totals totals;
  bool verbose = false, masks = true;

 private:
  bool follow(Grammar& grammar, const std::string& text, bool valid, std::size_t& reached) {
    for (const std::uint32_t id : tokenize(text, trie_)) {
      if (valid && masks) {
        const std::clock_t began = std::clock();
        const qsf::Status made = grammar.mask(trie_, bits_);
        totals.masks.push_back(microseconds(began));
        if (verbose && totals.masks.back() > 2000) {
          std::printf("slow mask: %.0f us: %s after %s\n", totals.masks.back(), name_.c_str(),
                      text.substr(reached > 60 ? reached - 60 : 0, std::min<std::size_t>(reached, 60)).c_str());
        }
        if (!made) {
          fails(made.error().sentence);
          return false;
        }
      }
      const qsf::Result<bool> taken = grammar.accept(tokens_[id]);
      if (!taken) {
        fails(taken.error().sentence);
        return false;
      }
      const bool in_mask = (bits_[id / 64] >> id % 64 & 1) != 0;
      if (valid && masks && in_mask != *taken) fails("the mask and the text differ");
      if (!*taken) return false;
      reached += tokens_[id].size();
    }
    return grammar.can_end();
  }
  void fails(const char* why) {
    ++totals.failures;
    ++totals.reasons[std::string("while reading: ") + why];
    if (verbose) std::printf("failure: %s: %s\n", name_.c_str(), why);
  }

  std::string name_;  // of the file
  const std::vector<std::string>& tokens_;
  const TokenTrie& trie_;
  std::vector<std::byte> memory_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: qsf-bench-grammar FOLDER VOCABULARY [--verbose] [--no-masks] [--every N]\n");
    return 2;
  }
  const std::vector<std::string> tokens = read_vocabulary(argv[2]);
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  std::vector<std::byte> memory(TokenTrie::memory_for(views));
  const std::clock_t began = std::clock();
  const qsf::Result<TokenTrie> trie = TokenTrie::build(views, memory);
  if (!trie) {
    std::fprintf(stderr, "%s\n", trie.error().sentence);
    return 1;
  }
  std::printf("vocabulary: %zu tokens, %zu nodes, %zu exits of strings, %zu bytes at most, %.1f ms\n", tokens.size(),
              trie->nodes().size(), trie->exits().size(), memory.size(), microseconds(began) / 1000);
  Bench bench(tokens, *trie);
  std::size_t every = 1;
  for (int i = 3; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--verbose") bench.verbose = true;
    if (word == "--no-masks") bench.masks = false;
    if (word == "--every" && i + 1 < argc) every = std::max<std::size_t>(1, std::strtoul(argv[i + 1], nullptr, 10));
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i < files.size(); i += every) bench.run(files[i]);
  Totals& t = bench.totals;
  std::printf("schemas %zu, passing %zu, refused %zu, valid refused %zu, invalid accepted %zu, failures %zu\n",
              t.schemas, t.passing, t.refused, t.valid_refused, t.invalid_accepted, t.failures);
  print("mask", t.masks);
  print("compile", t.compiles);
  std::printf("memory of a grammar: at most %zu bytes\n", t.memory);
  std::vector<std::pair<std::size_t, std::string>> reasons;
  for (const auto& [why, n] : t.reasons) reasons.emplace_back(n, why);
  std::sort(reasons.rbegin(), reasons.rend());
  for (std::size_t i = 0; i < std::min<std::size_t>(reasons.size(), 40); ++i) {
    std::printf("%6zu %s\n", reasons[i].first, reasons[i].second.c_str());
  }
  return t.failures == 0 ? 0 : 1;
}
