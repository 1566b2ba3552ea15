#include "native/run/json.h"

#include "native/cli/input.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr int kDeepest = 200;  // lists and objects in each other

}  // namespace

Result<Json> read_json(const std::string& path, std::size_t limit, std::string_view option, std::string_view instead) {
  QSF_LET(text, read_text(path, limit, option));
  bool deep = false;
  const Json::parser_callback_t check = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  Json read = Json::parse(text, check, false);
  if (deep) return make_error(ErrorCode::bad_input, "{} has lists in each other, more than {} deep", path, kDeepest);
  if (read.is_discarded()) return make_error(ErrorCode::bad_input, "{} is not {}", path, instead);
  return read;
}

}  // namespace qsf::run
