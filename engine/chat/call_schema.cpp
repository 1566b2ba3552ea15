#include "chat/call_schema.h"

#include <algorithm>
#include <cstdio>

#include "answers/out.h"
#include "chat/block.h"
#include "qsf/base/json.h"
#include "qsf/base/store.h"
#include "qsf/base/try.h"

namespace qsf::chat {
namespace {

using answers::Out;
using json::Document;
using json::Kind;

class SchemaWriter {
 public:
  SchemaWriter(const Document& document, Out& out) : d_(document), out_(out) {}

  /// Writes the schema of a function's arguments, which are an object. As a part of another schema it gets an
  /// identifier, to which its references are relative.
  void parameters(std::uint32_t function, std::string_view id) {
    const std::uint32_t schema = d_.member(function, "parameters");
    if (schema == 0 || d_[schema].kind != Kind::object) {
      const bool any = schema != 0 && d_[schema].kind == Kind::boolean && d_[schema].truth;
      out_.put(any ? R"({"type":"object"})" : R"({"type":"object","additionalProperties":false})");
      return;
    }
    base_ = id;
    out_.put('{');
    bool first = true;
    if (!id.empty() && d_.member(schema, "$id") == 0) member("$id", id, first);
    if (d_.member(schema, "type") == 0) member("type", "object", first);
    members(schema, first);
    out_.put('}');
    base_ = {};
  }
  void text(std::string_view text) {
    json::write_text(text, [this](char c) { out_.put(c); });
  }

 private:
  void member(std::string_view name, std::string_view value, bool& first) {
    separate(first);
    text(name);
    out_.put(':');
    text(value);
  }
  void separate(bool& first) {
    if (!first) out_.put(',');
    first = false;
  }
  void members(std::uint32_t parent, bool& first) {
    for (std::uint32_t i = d_[parent].first; i != 0; i = d_[i].next) {
      separate(first);
      text(d_[i].name);
      out_.put(':');
      const bool refers = d_[i].name == "$ref" && d_[i].kind == Kind::string && d_[i].text.starts_with('#');
      if (refers && !base_.empty()) {
        out_.put('"');
        out_.put(base_);
        for (const char c : d_[i].text) out_.put_escaped(c);
        out_.put('"');
      } else {
        value(i);
      }
    }
  }
  void value(std::uint32_t id) {
    const json::Value& v = d_[id];
    bool first = true;
    switch (v.kind) {
      case Kind::null:
        return out_.put("null");
      case Kind::boolean:
        return out_.put(v.truth ? "true" : "false");
      case Kind::number:
        return out_.put(v.text);
      case Kind::string:
        return text(v.text);
      case Kind::array:
        out_.put('[');
        for (std::uint32_t i = v.first; i != 0; i = d_[i].next) {
          separate(first);
          value(i);
        }
        return out_.put(']');
      case Kind::object:
        out_.put('{');
        members(id, first);
        return out_.put('}');
    }
  }

  const Document& d_;
  Out& out_;
  std::string_view base_;
};

/// Returns the function of a tool's definition, or 0.
std::uint32_t function_of(const Document& d, std::uint32_t tool) {
  const std::uint32_t inner = d.member(tool, "function");
  const std::uint32_t function = inner != 0 && d[inner].kind == Kind::object ? inner : tool;
  const std::uint32_t name = d.member(function, "name");
  return name != 0 && d[name].kind == Kind::string && !d[name].text.empty() ? function : 0;
}

/// Writes the schema of a call of one tool.
void write_call(SchemaWriter& schema, Out& out, const CallForm& form, const Document& d, std::uint32_t function,
                std::string_view id) {
  out.put(R"({"type":"object","properties":{)");
  schema.text(form.name_key.view());
  out.put(R"(:{"const":)");
  schema.text(d[d.member(function, "name")].text);
  out.put("},");
  schema.text(form.arguments_key.view());
  out.put(':');
  schema.parameters(function, id);
  for (std::size_t i = 0; i < form.n_members; ++i) {
    out.put(',');
    schema.text(form.members[i].view());
    out.put(R"(:{"type":["string","number"],"maxLength":64})");
  }
  out.put(R"(},"required":[)");
  schema.text(form.name_key.view());
  out.put(',');
  schema.text(form.arguments_key.view());
  out.put(R"(],"additionalProperties":false})");
}

}  // namespace

Result<ToolTexts> tool_texts(const Conversation& conversation, const CallForm& form, std::string_view only,
                             std::span<std::byte> memory, std::span<std::byte> scratch) {
  const auto full = [&] {
    return make_error(ErrorCode::out_of_memory, "the tools need more than {} bytes for texts: see text_bytes",
                      memory.size());
  };
  Store store(scratch);
  Document d;
  std::uint32_t tools = 0;
  for (const std::string_view text : {conversation.more, conversation.values}) {
    if (tools != 0 || text.find("\"tools\"") == text.npos) continue;
    QSF_LET(read, Document::read(text, store));
    d = read;
    tools = d.member(Document::kRoot, "tools");
    if (d[tools].kind != Kind::array) tools = 0;
  }
  std::size_t n = 0;
  const auto each = [&](auto&& use) {
    if (tools == 0) return;
    for (std::uint32_t i = d[tools].first; i != 0; i = d[i].next) {
      const std::uint32_t function = function_of(d, i);
      if (function != 0 && (only.empty() || d[d.member(function, "name")].text == only)) use(function);
    }
  };
  each([&](std::uint32_t) { ++n; });
  if (n == 0) {
    return only.empty()
               ? make_error(ErrorCode::bad_argument, "there are no tools that an answer could call")
               : make_error(ErrorCode::bad_argument, "there is no tool {:.60} that an answer could call", only);
  }
  Block block(memory);
  const std::span<ToolText> made = block.take<ToolText>(n);
  if (made.size() != n) return full();
  const std::span<char> room(reinterpret_cast<char*>(block.rest().data()), block.rest().size());
  Out out(room);
  SchemaWriter schema(d, out);
  std::size_t i = 0;
  each([&](std::uint32_t function) {
    const std::size_t begin = out.size();
    out.put(d[d.member(function, "name")].text);
    const std::size_t end = out.size();
    schema.parameters(function, {});
    made[i++] = {out.from(begin).substr(0, end - begin), out.from(end)};
  });
  const std::size_t begin = out.size();
  if (form.kind == CallKind::json) {
    if (form.list) out.put(R"({"type":"array","minItems":1,"items":)");
    out.put(R"({"anyOf":[)");
    std::size_t number = 0;
    each([&](std::uint32_t function) {
      char id[32];
      const int size = std::snprintf(id, sizeof(id), "qsf:%zu", number);
      if (number++ != 0) out.put(',');
      write_call(schema, out, form, d, function, {id, static_cast<std::size_t>(size)});
    });
    out.put(form.list ? "]}}" : "]}");
  }
  if (out.full()) return full();
  const std::string_view calls = out.from(begin);
  return ToolTexts{made, calls, block.rest().subspan(out.size())};
}

}  // namespace qsf::chat
