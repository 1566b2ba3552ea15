// The text of a template as literal text, tags and tokens.
#pragma once

#include <cstdint>
#include <string_view>

namespace qsf::templates {

enum class TokenKind : std::uint8_t {
  bad,  // no token begins here
  end,  // of the template
  name,
  text,  // with its quotes
  integer,
  real,
  sign,
  tag_end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;

  bool is(std::string_view sign) const { return kind == TokenKind::sign && text == sign; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

/// The tag that follows a literal text.
enum class Tag : std::uint8_t { end, print, statement, unclosed_comment, unclosed_raw };

class Lexer {
 public:
  Lexer() = default;
  /// `source` has no carriage returns.
  explicit Lexer(std::string_view source) : source_(source) {}

  /// Reads the literal text up to the next tag or comment, without the white space that the tag removes. Comments end
  /// a text without a tag: `more` means that the text goes on.
  Tag read_text(std::string_view& text, bool& more);
  /// Reads the next token of a tag. The end of a tag removes the white space that follows, as it asks.
  Token next(Tag tag);

  std::size_t at() const { return at_; }

 private:
  bool skip(std::string_view text);
  void skip_space();
  bool end_of_tag(Tag tag);
  std::string_view without_space(std::string_view text, char mark, bool line_starts) const;
  bool read_raw(std::string_view& text);
  std::string_view rest() const { return source_.substr(at_); }

  std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t brackets_ = 0;  // that are open in a tag
};

}  // namespace qsf::templates
