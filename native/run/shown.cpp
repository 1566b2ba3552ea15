#include "native/run/shown.h"

#include <utility>

#include "native/run/output.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {

ShownTexts::ShownTexts(const Options& options, bool converses, std::size_t first_call, std::function<void()> begun)
    : o_(options), converses_(converses), begun_(std::move(begun)) {
  for (std::uint32_t i = 0; i < options.answers; ++i) texts_.push_back({Answer(options, first_call)});
}

Status ShownTexts::add(std::size_t i, const chat::Part& part) {
  if (i == at_) return put(part);
  texts_[i].waiting.push_back({part.kind, std::string(part.text)});
  return {};
}

Status ShownTexts::end(std::size_t i) {
  texts_[i].has_ended = true;
  while (at_ < texts_.size() && texts_[at_].has_ended) {
    QSF_TRY(head());
    if (texts_.size() > 1) QSF_TRY(converses_ ? texts_[at_].answer.end() : show("\n"));
    if (++at_ == texts_.size()) break;
    for (const Waiting& part : std::exchange(texts_[at_].waiting, {})) QSF_TRY(put({part.kind, part.text}));
  }
  return {};
}

/// Shows the line before the present text, once.
Status ShownTexts::head() {
  begun_();
  if (texts_.size() == 1 || std::exchange(texts_[at_].has_head, true)) return {};
  return show("--- answer " + std::to_string(at_ + 1) + " of " + std::to_string(texts_.size()) + ", seed " +
              std::to_string(o_.sampler.seed + at_) + " ---\n");
}

Status ShownTexts::put(const chat::Part& part) {
  QSF_TRY(head());
  return converses_ ? texts_[at_].answer.add(part) : show(part.text);
}

}  // namespace qsf::run
