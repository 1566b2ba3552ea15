#include "native/made/open_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "native/made/made_source.h"
#include "native/sources/address.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

bool names_qsf(const std::string& url) { return name_of_url(url).ends_with(".qsf"); }

}  // namespace

Result<FoundModel> locate_model(const std::string& where, const SourceOptions& options, ModelUse use) {
  FoundModel out;
  out.where = where;
  if (!is_hub(where)) return out;
  QSF_LET(found, find_in_hub(where, options, use));
  out.where = found.path.empty() ? found.url : found.path;
  out.names = std::move(found.names);
  out.token = std::move(found.token);
  out.choice = found.note;
  if (!found.note.empty()) out.notes.push_back(std::move(found.note));
  return out;
}

Result<FoundModel> find_model(const std::string& where, const SourceOptions& options, NamesOfUrls names) {
  QSF_LET(out, locate_model(where, options));
  if (!is_url(out.where)) {
    QSF_LET(made, MadeModel::open(out.where, options));
    out.made = std::move(made);
  } else if (names == NamesOfUrls::checked || !names_qsf(out.where) || !options.quant_type.empty()) {
    std::uint32_t status = 0;
    SourceOptions reading = options;
    reading.token = out.token;
    Result<std::shared_ptr<MadeModel>> made = MadeModel::open_at(out.where, out.names, reading, status);
    if (!made) return is_hub(where) ? hub_error(made.error(), status, where) : made.error();
    out.made = std::move(*made);
  }
  if (out.made) std::ranges::copy(out.made->warnings(), std::back_inserter(out.notes));
  return out;
}

Result<Source> open_source(const FoundModel& model, const SourceOptions& options) {
  SourceOptions reading = options;
  reading.token = model.token;
  return model.made ? open_made(model.made, reading) : Source::open(model.where, reading);
}

}  // namespace qsf
