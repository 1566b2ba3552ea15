#include "converter/quantize/losses.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "converter/files/json.h"
#include "converter/files/output_file.h"
#include "converter/model/sizes.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"

namespace qsf::convert {
namespace {

constexpr const char* kMeasuredOn = "measured_on";
constexpr const char* kLosses = "losses";
constexpr const char* kSection = "section";
constexpr const char* kTensor = "tensor";
constexpr const char* kType = "type";
constexpr const char* kLoss = "loss";

constexpr KeyForm kSectionForm{{0, kSection, 0, kMaxLayers + 1}};

}  // namespace

Result<Losses> Losses::read(const Input& file) {
  QSF_LET(json, read_json(file, 0, file.size));
  Fields top(json, file.name);
  const std::string of = top.text(kMeasuredOn, "");
  QSF_TRY(top.status());
  Losses out(of);
  const Json* const list = top.get(kLosses);
  if (of.empty() || list == nullptr || !list->is_array()) {
    return make_error(ErrorCode::bad_input, "{:.100} is no file of losses", file.name);
  }
  for (const Json& json_loss : *list) {
    Fields fields(json_loss, file.name);
    const Lookup lookup = lookup_in(json_loss);
    Counts counts(lookup, file.name);
    const std::uint32_t section = counts.read(kSection, kSectionForm);
    const std::string tensor = fields.text(kTensor, ""), type = fields.text(kType, "");
    const double loss = fields.number(kLoss);
    QSF_TRY(counts.status());
    QSF_TRY(fields.status());
    const auto rule = std::ranges::find(kRoleRules, tensor, &RoleRule::name);
    const Format* const format = find_format(type);
    if (rule == kRoleRules.end() || format == nullptr || !std::isfinite(loss)) {
      return make_error(ErrorCode::bad_input, "{:.100}: {:.60} in {:.60} is no matrix in a type that loses something",
                        file.name, tensor, type);
    }
    out.losses_[{section, rule->role, format->id}] = loss;
  }
  return out;
}

Status Losses::check(const std::string& measured_on, std::string_view file) const {
  if (measured_on_ == measured_on) return {};
  return make_error(ErrorCode::bad_argument, "{:.100} has the losses of another model, or those over other texts",
                    file);
}

std::optional<double> Losses::find(std::pair<std::uint32_t, Role> tensor, FormatId type) const {
  const auto at = losses_.find({tensor.first, tensor.second, type});
  return at == losses_.end() ? std::nullopt : std::optional(at->second);
}

void Losses::add(std::pair<std::uint32_t, Role> tensor, FormatId type, double loss) {
  losses_[{tensor.first, tensor.second, type}] = loss;
  changed_ = true;
}

Status Losses::write(const std::string& path) const {
  if (!changed_) return {};
  Json list = Json::array();
  for (const auto& [of, loss] : losses_) {
    const auto& [section, role, type] = of;
    list.push_back(
        {{kSection, section}, {kTensor, rule_of(role).name}, {kType, find_format(type)->name}, {kLoss, loss}});
  }
  const std::string text = Json({{kMeasuredOn, measured_on_}, {kLosses, std::move(list)}}).dump(1) + "\n";
  QSF_LET(file, OutputFile::create(path));
  QSF_TRY(file.write_at(0, std::as_bytes(std::span(text))));
  QSF_TRY(file.flush());
  return file.commit();
}

}  // namespace qsf::convert
