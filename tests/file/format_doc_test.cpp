// The worked example of docs/reference/format.md is a real file: its hex dump must be, to the byte, what the writer
// makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/file/open_file.h"
#include "tests/file/small_file.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

std::string document_path() { return source_dir() + "/docs/reference/format.md"; }

/// One layer of two dimensions, every weight of a tensor the same: its role number plus one.
std::vector<std::byte> example_file() {
  SmallFile file;
  SmallOptions options;
  options.n_layers = 1;
  options.dim = options.head_dim = options.ffn_dim = options.vocab_size = 2;
  options.n_heads = options.n_kv_heads = 1;
  options.max_seq_len = 16;
  options.format = options.vectors = FormatId::f16;
  FileSpec source = small_source(options, file);
  source.header.bos = 0;
  source.header.eos = 1;
  source.meta = {{"norm.epsilon", MetaType::f32, 0, 0.5f, {}}};
  for (auto& [place, weights] : file.weights) {
    std::ranges::fill(weights, static_cast<float>(place.second) + 1);
  }
  const Result<std::uint64_t> size = write_file(source, memory_sink(file.bytes), {});
  EXPECT_TRUE(size) << size.error().sentence;
  return file.bytes;
}

/// The bytes of every ```hex block: lines of "offset: hex pairs", behind two spaces a remark.
std::vector<std::byte> bytes_of_document(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::vector<std::byte> out;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```hex";
      continue;
    }
    if (!inside) continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) {
      ADD_FAILURE() << "no offset in: " << line;
      return out;
    }
    EXPECT_EQ(std::strtoull(line.c_str(), nullptr, 16), out.size()) << line;
    std::istringstream pairs(line.substr(colon + 2, line.find("  ", colon + 2) - (colon + 2)));
    for (std::string pair; pairs >> pair;) {
      out.push_back(static_cast<std::byte>(std::strtoul(pair.c_str(), nullptr, 16)));
    }
  }
  return out;
}

TEST(FormatDocument, TheWorkedExampleIsWhatTheWriterMakes) {
  const std::vector<std::byte> want = example_file();
  if (const char* to = std::getenv("QSF_EXAMPLE_FILE")) {  // to take a new dump from
    std::ofstream(to, std::ios::binary)
        .write(reinterpret_cast<const char*>(want.data()), static_cast<std::streamsize>(want.size()));
  }
  const std::vector<std::byte> is = bytes_of_document(document_path());
  EXPECT_EQ(is.size(), want.size());
  const auto differ = std::ranges::mismatch(is, want);
  EXPECT_TRUE(is == want) << "first difference at byte " << differ.in1 - is.begin();
  EXPECT_TRUE(open_file(is));
}

/// The keys with their meanings, which the engine has no use for.
struct Documented {
  LayerKey key;
  std::string_view meaning;
};
constexpr Documented kDocumented[] = {
#define QSF_LAYER_KEY(number, type, name, least, most, meaning) {{number, #name, least, most}, meaning},
#define QSF_MODEL_KEY(number, type, name, least, most, meaning) {{number, #name, least, most}, meaning},
#include "qsf/file/layers.def"
};
static_assert(std::size(kDocumented) == kLayerKeys.size() + kModelKeys.size());

/// A table row of the document that begins so.
void expect_row(const std::string& document, const std::string& begin) {
  EXPECT_NE(document.find("\n| " + begin), std::string::npos) << begin;
}

TEST(FormatDocument, ListsEveryTypeRoleAndTag) {
  std::ifstream in(document_path());
  const std::string document{std::istreambuf_iterator<char>(in), {}};
  for (const Format& f : kFormats) {
    expect_row(document, std::to_string(static_cast<unsigned>(f.id)) + " | `" + std::string(f.name) + "` | " +
                             std::to_string(f.block) + " | " + std::to_string(f.block_bytes) + " |");
  }
  for (const RoleRule& rule : kRoleRules) {
    const char* place = rule.scope == RoleScope::embedding ? "embedding"
                        : rule.scope == RoleScope::layer   ? "layer"
                                                           : "final";
    expect_row(document, std::to_string(static_cast<unsigned>(rule.role)) + " | `" + std::string(role_name(rule.role)) +
                             "` | " + place + " | " + (rule.matrix ? "matrix" : "vector") + " |");
  }
  for (const auto& [key, meaning] : kDocumented) {
    char range[80];
    std::snprintf(range, sizeof range, "%.0f | %.0f | ", key.least, key.most);
    const std::string name = std::to_string(key.number) + " | `" + std::string(key.name) + "` | ";
    EXPECT_TRUE(document.find("\n| " + name + "u32 | " + range + std::string(meaning)) != std::string::npos ||
                document.find("\n| " + name + "f32 | " + range + std::string(meaning)) != std::string::npos)
        << name << range << meaning;
  }
  for (const std::uint32_t tag : kKnownTags) expect_row(document, "`" + std::string(TagName(tag).text) + "` |");
  for (const std::string_view key : {kMetaNormEpsilon, kMetaWindow, kMetaEndTokens, kMetaArchitecture, kMetaName}) {
    expect_row(document, "`" + std::string(key) + "` |");
  }
}

}  // namespace
}  // namespace qsf::test
