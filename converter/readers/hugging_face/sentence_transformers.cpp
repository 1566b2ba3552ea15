#include "converter/readers/hugging_face/sentence_transformers.h"

#include <algorithm>
#include <array>

#include "converter/readers/hugging_face/hugging_face.h"
#include "converter/recipes/settings.h"
#include "converter/tensors/dense.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::size_t kMaxModules = 16;

struct PoolingName {
  std::string_view key;   // a truth value in the module's configuration
  std::string_view mode;  // the value of "pooling_mode" in newer files
  std::optional<Pooling> pooling;
};
constexpr std::array kPoolings{
    PoolingName{"pooling_mode_cls_token", "cls", Pooling::first},
    PoolingName{"pooling_mode_mean_tokens", "mean", Pooling::mean},
    PoolingName{"pooling_mode_lasttoken", "lasttoken", Pooling::last},
    PoolingName{"pooling_mode_max_tokens", "max", {}},
    PoolingName{"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", {}},
    PoolingName{"pooling_mode_weightedmean_tokens", "weightedmean", {}},
};

Result<Pooling> read_pooling(const InputFolder& folder, const std::string& path) {
  const std::string file = (path.empty() ? "" : path + "/") + "config.json";
  QSF_LET(json, read_json(folder, file));
  Fields fields(json, file);
  const std::string mode = fields.text("pooling_mode", "");
  const PoolingName* found = nullptr;
  std::size_t n_found = 0;
  for (const PoolingName& each : kPoolings) {
    if (!fields.flag(each.key, false) && (mode.empty() || mode != each.mode)) continue;
    found = &each;
    ++n_found;
  }
  QSF_TRY(fields.status());
  if (n_found != 1) {
    return make_error(ErrorCode::unsupported, "{:.80}: {} ways of pooling are named, one is possible", file, n_found);
  }
  if (found->pooling) return *found->pooling;
  return make_error(ErrorCode::unsupported, "{:.80}: \"{}\" is not supported", file, found->key);
}

/// Returns "Pooling" for "sentence_transformers.models.Pooling".
std::string_view class_of(std::string_view type) { return type.substr(type.rfind('.') + 1); }

/// Returns the matrix of a Dense module, which must have no bias and no activation.
Result<LoadedTensor> read_dense(const InputFolder& folder, const std::string& path) {
  constexpr std::string_view kIdentity = "Identity", kWeight = "linear.weight";
  const InputFolder module{folder.name + "/" + path,
                           [&](const std::string& name) { return folder.find(path + "/" + name); }};
  const std::string file = path + "/config.json";
  QSF_LET(json, read_json(folder, file));
  if (json.is_null()) return make_error(ErrorCode::bad_input, "{:.80} is missing", file);
  Fields fields(json, file);
  const std::string activation = fields.text("activation_function", "torch.nn.modules.activation.Tanh");
  const bool has_bias = fields.flag("bias", true);
  QSF_TRY(fields.status());
  if (class_of(activation) != kIdentity) {
    return make_error(ErrorCode::unsupported, "{:.80}: the activation \"{:.80}\" is not supported, only {}", file,
                      activation, kIdentity);
  }
  if (has_bias) return make_error(ErrorCode::unsupported, "{:.80}: a Dense module with a bias is not supported", file);
  LoadedModel weights;
  QSF_TRY(add_weights(module, weights));
  if (weights.tensors.size() != 1 || weights.tensors.front().name != kWeight) {
    return make_error(ErrorCode::bad_input, "{:.80} holds other tensors than {}", module.name, kWeight);
  }
  weights.tensors.front().name = path + "/" + std::string(kWeight);
  return std::move(weights.tensors.front());
}

bool is_folder_name(std::string_view path) {
  return path != "." && path != ".." && path.find('/') == path.npos && path.find('\\') == path.npos;
}

}  // namespace

Status read_sentence_transformers(const InputFolder& folder, LoadedModel& model) {
  constexpr std::string_view kModules = "modules.json";
  QSF_LET(modules, read_json(folder, std::string(kModules)));
  if (modules.is_null()) return {};
  if (!modules.is_array() || modules.size() > kMaxModules) {
    return make_error(ErrorCode::bad_input, "{} is not a list of at most {} modules", kModules, kMaxModules);
  }
  std::optional<Pooling> pooling;
  bool normalize = false;
  std::vector<LoadedTensor> dense;
  for (const Json& module : modules) {
    Fields fields(module, kModules);
    const std::string type = fields.text("type", ""), path = fields.text("path", "");
    QSF_TRY(fields.status());
    const std::string_view name = class_of(type);
    if (!is_folder_name(path)) {
      return make_error(ErrorCode::bad_input, "{}: the path \"{:.80}\" is not a folder's name", kModules, path);
    }
    if (name == "Transformer" && path.empty() && !pooling) continue;
    if (name == "Pooling" && !pooling && !normalize) {
      QSF_LET(read, read_pooling(folder, path));
      pooling = read;
    } else if (name == "Dense" && pooling && !normalize) {
      QSF_LET(read, read_dense(folder, path));
      dense.push_back(std::move(read));
    } else if (name == "Normalize" && pooling) {
      normalize = true;
    } else {
      return make_error(ErrorCode::unsupported, "{}: the module \"{:.80}\" is not supported in this place", kModules,
                        type);
    }
  }
  QSF_LET(text, read_json(folder, "sentence_bert_config.json"));
  Fields fields(text, "sentence_bert_config.json");
  if (fields.flag("do_lower_case", false)) {
    return make_error(ErrorCode::unsupported, "sentence_bert_config.json: \"do_lower_case\" is not supported");
  }
  QSF_TRY(fields.status());
  QSF_LET(prompts, read_json(folder, "config_sentence_transformers.json"));
  Fields prompt(prompts, "config_sentence_transformers.json");
  const std::string usual = prompt.text("default_prompt_name", "");
  QSF_TRY(prompt.status());
  if (!usual.empty()) {
    model.warnings.push_back("texts are embedded as they are: the prompt that the model calls \"" + usual +
                             "\" must be put in front of them");
  }
  return take_embedding(model, pooling, normalize, std::move(dense));
}

Status take_embedding(LoadedModel& model, std::optional<Pooling> pooling, bool normalize,
                      std::vector<LoadedTensor> dense) {
  const std::string head = name_of(*model.recipe, model.naming, Role::head, 0);
  const bool has_head = std::ranges::any_of(model.tensors, [&](const LoadedTensor& t) { return t.name == head; });
  if (!has_head) model.layers.model.push_back(model_setting("headless", 1));
  if (pooling) model.layers.model.push_back(model_setting("pooling", static_cast<double>(*pooling)));
  if (normalize) model.layers.model.push_back(model_setting("normalize", 1));
  if (dense.empty()) return {};
  QSF_LET(folded, fold_dense(name_of(*model.recipe, model.naming, Role::dense, 0), std::move(dense)));
  if (folded.shape.front() != model.config.dim) {
    return make_error(ErrorCode::unsupported,
                      "the Dense modules make embeddings of {} values; as many as the model's width, {}, are possible",
                      folded.shape.front(), model.config.dim);
  }
  model.tensors.push_back(std::move(folded));
  return {};
}

}  // namespace qsf::convert
