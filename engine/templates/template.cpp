#include "qsf/templates/template.h"

#include <algorithm>
#include <new>

#include "qsf/base/utf8.h"
#include "templates/machine.h"
#include "templates/parser.h"

namespace qsf::templates {

struct Template::Parsed {
  /// `before`: bytes of the caller's memory in front of `memory`.
  Parsed(std::size_t before, std::span<std::byte> memory, const Limits& limits)
      : work(memory, limits), before(before) {}

  /// Returns the failure with the line that it is in.
  Error error() const {
    const Error& e = work.error;
    if (e.code == ErrorCode::template_refusal || e.code == ErrorCode::bad_input) return e;
    const std::string_view before = source.substr(0, work.at);
    const auto line = static_cast<std::uint64_t>(std::ranges::count(before, '\n')) + 1;
    return make_error(e.code, "line {} of the chat template: {}", line, e.sentence);
  }

  Work work;
  std::string_view source;  // with line feeds only, and without the last
  const Node* body = nullptr;
  std::size_t before, parsed_bytes = 0;
  std::string_view refusal;
};

Result<Template> Template::parse(std::string_view text, std::span<std::byte> memory, const Limits& limits) {
  if (!utf8::is_valid(text)) return make_error(ErrorCode::bad_text, "the chat template is not UTF-8");
  Pool all(memory);
  void* const place = all.take(sizeof(Parsed));
  if (place == nullptr || text.size() > 0x7fffffff) {
    return make_error(ErrorCode::out_of_memory, "a chat template needs more memory than {} bytes", memory.size());
  }
  auto* const parsed = new (place) Parsed(all.used(), memory.subspan(all.used()), limits);
  Work& work = parsed->work;
  parsed->source = text;
  if (text.find('\r') != text.npos) {
    auto* const copy = static_cast<char*>(work.pool.take(text.size()));
    if (copy == nullptr) work.out_of_memory();
    std::size_t n = 0;
    for (std::size_t i = 0; i < text.size() && copy != nullptr; ++i) {
      if (text[i] == '\n' && i > 0 && text[i - 1] == '\r') continue;
      copy[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    parsed->source = {copy, n};
  }
  if (parsed->source.ends_with('\n')) parsed->source.remove_suffix(1);
  if (!work.failed()) parsed->body = Parser(work, parsed->source).parse();
  if (work.failed()) return parsed->error();
  parsed->parsed_bytes = work.pool.used();
  return Template(parsed);
}

Status Template::render(const Variables& variables, const Sink& sink) {
  Work& work = parsed_->work;
  work.pool.release(parsed_->parsed_bytes);
  work.begin();
  Machine machine(work, variables);
  machine.run(parsed_->body, variables, sink);
  parsed_->refusal = machine.refusal;
  if (work.failed()) return parsed_->error();
  return {};
}

std::string_view Template::refusal() const { return parsed_->refusal; }

std::size_t Template::used_bytes() const { return parsed_->before + parsed_->work.pool.used(); }

}  // namespace qsf::templates
