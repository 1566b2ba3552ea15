#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "qsf/base/bytes.h"
#include "qsf/file/layout.h"
#include "qsf/file/reader.h"
#include "tests/support/error_of.h"

namespace qsf {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

/// The section's entries as "key=value" and, if it ends in one, its error.
std::string read_all(std::string_view bytes) {
  std::string out;
  Result<MetaReader> reader = MetaReader::open({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  if (!reader) return std::string(error_name(reader.error().code));
  for (MetaValue value;;) {
    const Result<bool> more = reader->next(value);
    if (!more) {
      EXPECT_GT(std::strlen(error_of(more).sentence), 10u);
      return out + std::string(error_name(more.error().code));
    }
    if (!*more) return out;
    out += std::string(value.key) + "=";
    if (value.type == MetaType::u32) out += std::to_string(value.u32);
    if (value.type == MetaType::f32) out += std::to_string(value.f32);
    if (value.type == MetaType::text) out += value.text;
    out += ";";
  }
}

constexpr std::string_view kGood =
    "\x03\0\0\0"
    "\1\0a\1\x2a\0\0\0"
    "\1\0b\2\0\0\x80\x3f"
    "\2\0bc\3\2\0\xc3\xa9"sv;

TEST(Meta, ReadsEveryType) { EXPECT_EQ(read_all(kGood), "a=42;b=1.000000;bc=\xc3\xa9;"); }

TEST(Meta, EmptyIsNoEntries) { EXPECT_EQ(read_all("\0\0\0\0"sv), ""); }

TEST(Meta, EveryTruncationIsAnError) {
  for (std::size_t size = 0; size < kGood.size(); ++size) {
    const std::vector<char> exact(kGood.begin(), kGood.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(read_all({exact.data(), exact.size()}).ends_with("bad_section")) << size;
  }
}

TEST(Meta, BytesBehindTheLastEntry) {
  EXPECT_TRUE(read_all(std::string(kGood) + "x").ends_with("bad_section"));
  EXPECT_EQ(read_all("\0\0\0\0\1\0a\1\0\0\0\0"sv), "bad_section");  // an entry that is not counted
}

TEST(Meta, MoreEntriesThanBytes) { EXPECT_EQ(read_all("\xff\xff\xff\xff\1\0a\1\0\0\0\0"sv), "a=0;bad_section"); }

TEST(Meta, KeysMustAscend) {
  EXPECT_EQ(read_all("\2\0\0\0\1\0a\1\0\0\0\0\1\0a\1\0\0\0\0"sv), "a=0;bad_section");
  EXPECT_EQ(read_all("\2\0\0\0\1\0b\1\0\0\0\0\1\0a\1\0\0\0\0"sv), "b=0;bad_section");
}

TEST(Meta, KeysMustPrint) {
  EXPECT_EQ(read_all("\1\0\0\0\0\0\1\0\0\0\0"sv), "bad_section");      // empty
  EXPECT_EQ(read_all("\1\0\0\0\1\0\n\1\0\0\0\0"sv), "bad_section");    // a line break
  EXPECT_EQ(read_all("\1\0\0\0\1\0\xc3\1\0\0\0\0"sv), "bad_section");  // beyond ASCII
}

TEST(Meta, UnknownTypes) {
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\0\0\0\0\0"sv), "unsupported");
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\5\0\0\0\0"sv), "unsupported");
}

TEST(Meta, LongTextsHaveALimit) {
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\4\2\0\0\0hi"sv), "a=hi;");
  const std::string most(kMaxMetaText, 'x');
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\4\0\0\x10\0"s + most), "a=" + most + ";");
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\4\1\0\x10\0"s + most + "x"), "bad_section");
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\4\xff\xff\xff\xff"sv), "bad_section");
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\4\3\0\0\0hi"sv), "bad_section");
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\4\1\0\0\0\xff"sv), "bad_section");
}

TEST(Meta, NumbersMustBeFinite) {
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\2\0\0\x80\x7f"sv), "bad_section");
  EXPECT_EQ(read_all("\1\0\0\0\1\0a\2\0\0\xc0\x7f"sv), "bad_section");
}

TEST(Meta, TextMustBeUtf8) {
  const auto text = [](std::string_view s) {
    return read_all("\1\0\0\0\1\0a\3"s + std::string{static_cast<char>(s.size()), 0} + std::string(s));
  };
  for (const std::string_view good : {""sv, "a"sv, "\xc2\x80"sv, "\xe0\xa0\x80"sv, "\xed\x9f\xbf"sv, "\xee\x80\x80"sv,
                                      "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv, "\0"sv}) {
    EXPECT_EQ(text(good), "a=" + std::string(good) + ";");
  }
  for (const std::string_view bad :
       {"\x80"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xc2"sv, "\xc2\x41"sv, "\xe0\x9f\xbf"sv, "\xed\xa0\x80"sv, "\xe1\x80"sv,
        "\xf0\x8f\xbf\xbf"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv, "\xe1\x80\xc0"sv}) {
    EXPECT_EQ(text(bad), "bad_section");
  }
}

}  // namespace
}  // namespace qsf
