#include "answers/calls.h"

#include <algorithm>
#include <array>
#include <optional>

#include "answers/literal.h"
#include "answers/syntaxes.h"

namespace qsf::answers {
namespace {

using json::Number;

/// The names that families of models have for the parts of a call.
constexpr std::array<std::string_view, 3> kNames{"name", "tool_name", "function"};
constexpr std::array<std::string_view, 2> kArguments{"arguments", "parameters"};
constexpr std::string_view kFence = "```";

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// A range of the output.
struct Written {
  std::size_t begin = 0, end = 0;
};

class CallReader {
 public:
  CallReader(std::string_view body, const BodyOf& of, const Tools& tools, Out& out, const PartSink* sink)
      : in_(body), of_(of), tools_(tools), out_(out), sink_(sink) {}

  bool read() {
    std::size_t n = 0;
    skip();
    do {
      if (!one()) return false;
      ++n;
      skip();
    } while (!in_.ends());
    return n != 0 && n_calls_ != 0;
  }

 private:
  /// Skips blanks, fences with their word, and separators of calls.
  void skip() {
    while (true) {
      in_.skip_blanks();
      if (in_.take(kFence)) {
        while (is_letter(in_.peek())) in_.go(in_.at() + 1);
      } else if (!in_.take(',') && !in_.take(';')) {
        return;
      }
    }
  }

  bool one() {
    out_.shrink(0);
    if (!of_.name.empty()) {
      const std::optional<Written> arguments = object();
      return arguments && finish(of_.name, *arguments);
    }
    if (in_.peek() == '{') return json_call();
    if (in_.take('[')) return list();
    if (in_.take("<function=")) return tagged();
    return named();
  }

  bool list() {
    for (skip(); !in_.take(']'); skip()) {
      out_.shrink(0);
      if (in_.ends() || !(in_.peek() == '{' ? json_call() : python_call(in_.take_name()))) return false;
    }
    return true;
  }

  /// Copies an object.
  std::optional<Written> object() {
    in_.skip_blanks();
    Written written{out_.size(), 0};
    if (in_.peek() != '{' || !copy_value(in_, out_)) return {};
    written.end = out_.size();
    return written;
  }

  /// Copies an object, or the one that a text contains.
  std::optional<Written> object_or_text() {
    in_.skip_blanks();
    if (in_.take("null")) {
      const std::size_t begin = out_.size();
      out_.put("{}");
      return Written{begin, out_.size()};
    }
    if (!begins_text(in_)) return object();
    const std::size_t begin = out_.size();
    if (!read_text(in_, out_, &Out::put)) return {};
    Source text(out_.from(begin));
    text.skip_blanks();
    Written written{out_.size(), 0};
    if (text.ends()) {
      out_.put("{}");
    } else if (text.peek() != '{' || !copy_value(text, out_)) {
      return {};
    }
    text.skip_blanks();
    written.end = out_.size();
    return text.ends() ? std::optional(written) : std::nullopt;
  }

  std::optional<std::string_view> text() {
    const std::size_t begin = out_.size();
    if (!begins_text(in_) || !read_text(in_, out_, &Out::put) || out_.full()) return {};
    return out_.from(begin);
  }

  bool json_call() {
    std::optional<std::string_view> name;
    std::optional<Written> arguments;
    if (!json_members(name, arguments, 0) || !name) return false;
    if (!arguments) {
      if (of_.bare) return false;
      arguments = Written{out_.size(), out_.size() + 2};
      out_.put("{}");
    }
    return finish(*name, *arguments);
  }

  /// Reads the members of a call, or of the object `function` in it.
  bool json_members(std::optional<std::string_view>& name, std::optional<Written>& arguments, std::uint32_t depth) {
    if (!in_.take('{')) return false;
    for (bool first = true;; first = false) {
      in_.skip_blanks();
      if (in_.take('}')) return true;
      if (!first && !in_.take(',')) return false;
      in_.skip_blanks();
      const std::optional<std::string_view> key = text();
      in_.skip_blanks();
      if (!key || !in_.take(':')) return false;
      in_.skip_blanks();
      if (is_one_of(kArguments, *key)) {
        arguments = object_or_text();
        if (!arguments) return false;
      } else if (*key == "function" && in_.peek() == '{') {
        if (depth != 0 || !json_members(name, arguments, depth + 1)) return false;
      } else if (is_one_of(kNames, *key) && begins_text(in_)) {
        name = text();
        if (!name) return false;
      } else if (!copy_value(in_, out_)) {  // another member, which is left out
        return false;
      }
    }
  }

  /// Reads <function=NAME> after its sign of equality: tags of parameters, or an object.
  bool tagged() {
    const std::size_t end = in_.rest().find('>');
    if (end == std::string_view::npos) return false;
    const std::string_view name = trimmed(in_.between(in_.at(), in_.at() + end));
    in_.go(in_.at() + end + 1);
    in_.skip_blanks();
    if (in_.peek() == '{') {
      const std::optional<Written> arguments = object();
      in_.skip_blanks();
      (void)in_.take("</function>");
      return arguments && finish(name, *arguments);
    }
    constexpr std::string_view kBegin = "<parameter=", kEnd = "</parameter>", kLast = "</function>";
    constexpr std::array kEnds{kEnd, kBegin, kLast};
    Pairs pairs(*this, name);
    while (in_.take(kBegin)) {
      const std::size_t key_end = in_.rest().find('>');
      if (key_end == std::string_view::npos) return false;
      const std::string_view key = trimmed(in_.between(in_.at(), in_.at() + key_end));
      in_.go(in_.at() + key_end + 1);
      const std::size_t begin = in_.at();  // of a value whose closing tag may be missing
      const auto ends = [&] {
        return std::ranges::any_of(kEnds, [&](auto tag) { return in_.rest().starts_with(tag); });
      };
      while (!in_.ends() && !ends()) in_.go(in_.at() + 1);
      std::string_view value = in_.between(begin, in_.at());
      (void)in_.take(kEnd);
      if (value.starts_with('\n')) value.remove_prefix(1);
      if (value.ends_with('\n')) value.remove_suffix(1);
      pairs.add(key, value);
      in_.skip_blanks();
    }
    if (!in_.take(kLast) && !in_.ends()) return false;
    return pairs.finish();
  }

  /// Reads a call that begins with its name.
  bool named() {
    std::string_view name = in_.take_name();
    while (true) {
      skip_fence();
      if (in_.take_mark(mark_of("[CALL_ID]"))) {
        in_.skip_blanks();
        (void)in_.take_name();
      } else if (in_.take_mark(mark_of("[ARGS]")) || in_.take_mark(mark_of("<|tool_call_argument_begin|>"))) {
        continue;
      } else if (in_.take_mark(mark_of("<｜tool▁sep｜>"))) {  // after the name, or after the word "function" before it
        skip_fence();
        if (const std::string_view next = in_.take_name(); !next.empty()) name = next;
      } else {
        break;
      }
    }
    if (name.starts_with("call:")) name.remove_prefix(5);
    if (in_.peek() == '(') return python_call(name);
    if (in_.peek() == '{') {
      const std::optional<Written> arguments = object();
      return arguments && finish(name, *arguments);
    }
    Pairs pairs(*this, name);
    if (in_.ends()) return of_.closed && pairs.finish();
    bool any = false;
    for (; in_.take_mark(mark_of("<arg_key>")); any = true) {
      std::string_view key, value;
      if (!until(mark_of("</arg_key>"), key)) return false;
      in_.skip_blanks();
      if (!in_.take_mark(mark_of("<arg_value>")) || !until(mark_of("</arg_value>"), value)) return false;
      pairs.add(trimmed(key), value);
      in_.skip_blanks();
    }
    return any && pairs.finish();
  }

  void skip_fence() {
    in_.skip_blanks();
    if (!in_.take(kFence)) return;
    while (is_letter(in_.peek())) in_.go(in_.at() + 1);
    in_.skip_blanks();
  }

  bool until(std::size_t mark, std::string_view& text) {
    const std::size_t end = in_.find_mark(mark);
    if (end == std::string_view::npos) return false;
    text = in_.between(in_.at(), end);
    in_.go(end);
    return in_.take_mark(mark);
  }

  /// Reads the arguments of NAME(...), which all have names. print(...) may be around a call.
  bool python_call(std::string_view name, std::uint32_t depth = 0) {
    if (!in_.take('(')) return false;
    in_.skip_blanks();
    if (name == "print" && !tools_.has(name) && depth == 0) {
      const std::string_view inner = in_.take_name();
      if (!python_call(inner, depth + 1)) return false;
      in_.skip_blanks();
      return in_.take(')');
    }
    Pairs pairs(*this, name);
    for (bool first = true; !in_.take(')'); first = false) {
      if (!first && !in_.take(',')) return false;
      in_.skip_blanks();
      if (in_.take(')')) break;
      const std::string_view key = in_.take_name();
      in_.skip_blanks();
      if (key.empty() || !in_.take('=')) return false;
      pairs.begin(key);
      if (!copy_value(in_, out_)) return false;
      in_.skip_blanks();
    }
    return pairs.finish();
  }

  /// Arguments that become members of an object.
  class Pairs {
   public:
    Pairs(CallReader& reader, std::string_view name) : r_(reader), name_(r_.known(name)), begin_(r_.out_.size()) {
      r_.out_.put('{');
    }
    void begin(std::string_view key) {
      if (!std::exchange(first_, false)) r_.out_.put(',');
      write_string(key, r_.out_);
      r_.out_.put(':');
    }
    /// Adds a value that is stored as text.
    void add(std::string_view key, std::string_view text) {
      begin(key);
      r_.write_typed(text, r_.tools_.types_of(name_, key));
    }
    bool finish() {
      r_.out_.put('}');
      return r_.finish(name_, {begin_, r_.out_.size()});
    }

   private:
    CallReader& r_;
    std::string_view name_;
    std::size_t begin_;
    bool first_ = true;
  };

  /// Writes a text as a value of one of the types, or as a string if it is none of these or may be a string.
  void write_typed(std::string_view text, Types types) {
    const bool null = (types & types::kNull) != 0 && trimmed(text) == "null";
    if (null || (types != types::kUnknown && (types & types::kString) == 0)) {
      const std::size_t begin = out_.size();
      Source in(text);
      bool right = copy_value(in, out_);
      in.skip_blanks();
      right = right && in.ends() && !out_.full() && (types_of(out_.from(begin)) & types) != 0;
      if (right) return;
      out_.shrink(begin);
    }
    write_string(text, out_);
  }

  /// Returns the types that a value in JSON has.
  static Types types_of(std::string_view value) {
    switch (value.front()) {
      case '{':
        return types::kObject;
      case '[':
        return types::kArray;
      case '"':
        return types::kString;
      case 't':
      case 'f':
        return types::kBoolean;
      case 'n':
        return types::kNull;
      default:
        break;
    }
    const std::optional<Number> number = Number::read(value);
    return number && number->is_integer() ? types::kNumber | types::kInteger : types::kNumber;
  }

  /// Returns a tool's name without the prefixes and indexes that some families add.
  std::string_view known(std::string_view name) const {
    if (tools_.has(name)) return name;
    constexpr std::string_view kPrefix = "functions.", kSuffix = ".call";
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
    std::size_t end = name.size();
    while (end > 0 && is_digit(name[end - 1])) --end;
    if (end > 1 && end < name.size() && name[end - 1] == ':') name = name.substr(0, end - 1);
    return name;
  }

  bool finish(std::string_view name, Written arguments) {
    name = known(name);
    if (name.empty() || out_.full() || (of_.bare && !tools_.has(name))) return false;
    ++n_calls_;
    if (sink_ == nullptr) return true;
    sink_->put(sink_->context, {AnswerPart::call, name});
    sink_->put(sink_->context,
               {AnswerPart::arguments, out_.from(0).substr(arguments.begin, arguments.end - arguments.begin)});
    return true;
  }

  Source in_;
  const BodyOf& of_;
  const Tools& tools_;
  Out& out_;
  const PartSink* sink_;
  std::size_t n_calls_ = 0;
};

}  // namespace

bool read_calls(std::string_view body, const BodyOf& of, const Tools& tools, Out& out, const PartSink& sink) {
  // Read twice, because the sink gets all calls or none.
  return CallReader(body, of, tools, out, nullptr).read() && CallReader(body, of, tools, out, &sink).read();
}

}  // namespace qsf::answers
