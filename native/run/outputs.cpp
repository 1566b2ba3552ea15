#include "native/run/outputs.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "native/cli/signal.h"
#include "native/run/report.h"
#include "native/sources/address.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

/// Returns the hash of the model's tables. The checksums of a made file that are not known are computed first.
Result<std::string> model_hash(Host& host) {
  if (host.made() == nullptr) return std::string(host.session().model_hash());
  return host.made()->hash(cancelled());
}

template <class Made>
Status finish_all(const Options& o, Host& host, const Made& made, Outputs& out) {
  if (out.logits) QSF_TRY(out.logits->commit());
  if (!out.receipt) return {};
  QSF_LET(hash, model_hash(host));
  const std::string receipt = receipt_of(o, host, made, hash);
  QSF_TRY(out.receipt->write(std::as_bytes(std::span(receipt))));
  return out.receipt->commit();
}

}  // namespace

std::vector<std::string> inputs_of(const Options& o) {
  std::vector<std::string> inputs = o.files;
  if (!o.model.empty() && !is_address(o.model)) inputs.push_back(o.model);
  if (!o.host.draft.empty() && !is_address(o.speculate)) inputs.push_back(o.speculate);
  for (const std::string& file :
       {o.prompt_file, o.mode_value, o.kl_file, o.template_file, o.tools_file, o.session_file}) {
    if (!file.empty()) inputs.push_back(file);
  }
  return inputs;
}

Status Outputs::open(const Options& o, const Host& host) {
  std::vector<std::string> inputs = inputs_of(o);
  if (host.made() != nullptr) std::ranges::move(host.made()->paths(), std::back_inserter(inputs));
  const auto create = [&](const std::string& path, std::optional<OutputFile>& to) -> Status {
    if (path.empty()) return {};
    Result<OutputFile> file = OutputFile::create(path, inputs);
    if (!file) return file.error();
    to.emplace(std::move(*file));
    return {};
  };
  QSF_TRY(create(o.logits_file + o.save_logits_file, logits));  // one of them is empty
  QSF_TRY(create(o.receipt_file, receipt));
  if (logits && receipt && logits->path() == receipt->path()) {
    return make_error(ErrorCode::bad_argument, "{} and --receipt are both to be {}",
                      o.logits_file.empty() ? "--save-logits" : "--logits", logits->path());
  }
  return {};
}

Status Outputs::finish(const Options& o, Host& host, std::span<const Generation> made) {
  return finish_all(o, host, made, *this);
}
Status Outputs::finish(const Options& o, Host& host, const Perplexity& made) {
  return finish_all(o, host, made, *this);
}

}  // namespace qsf::run
