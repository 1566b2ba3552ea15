#include "converter/readers/hugging_face/text_part.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "converter/model/layer_tensors.h"

namespace qsf::convert {
namespace {

/// A prefix that transformers adds to the text model's names, and its replacement. The first that fits is replaced.
struct Prefix {
  std::string_view long_form, short_form;
};
constexpr std::array kTextPrefixes{
    Prefix{"model.language_model.model.", "model."}, Prefix{"model.language_model.lm_head.", "lm_head."},
    Prefix{"model.language_model.", "model."},       Prefix{"language_model.", ""},
    Prefix{"model.text_model.", "model."},
};

/// Parts for images and sound: towers, their connections to the text, tokens of their own.
constexpr std::array<std::string_view, 20> kOtherParts{
    "visual.",           "vision_tower.",
    "vision_model.",     "vision_embed_tokens.",
    "audio_tower.",      "audio_model.",
    "audio_encoder.",    "image_newline",
    "multi_modal_",      "mm_projector.",
    "connector.",        "embed_vision.",
    "embed_audio.",      "vision_projection.",
    "audio_projection.", "image_projection.",
    "vision_embedder.",  "vision_language_adapter.",
    "patch_merger.",     "vision_encoder.",
};
/// Heads that predict several tokens ahead, in Qwen3-Next, Qwen3.5 and others.
constexpr std::array<std::string_view, 3> kGuessingParts{"mtp.", "model.mtp.", "model.mtp_"};

/// Beginnings of names of Qwen's layer that guesses, which stands apart, and of such a layer after those of the text.
/// Some files have "model." in front of the former.
constexpr std::array kApart{
    Prefix{"mtp.layers.0.", ""},
    Prefix{"mtp.fc.", "eh_proj."},
    Prefix{"mtp.pre_fc_norm_embedding.", "enorm."},
    Prefix{"mtp.pre_fc_norm_hidden.", "hnorm."},
    Prefix{"mtp.norm.", "shared_head.norm."},
};

/// The tensors of a layer that guesses which repeat the embedding and the head.
constexpr std::array<std::string_view, 4> kCopies{
    "embed_tokens.weight",
    "shared_head.head.weight",
    "nextn.embed_tokens.weight",
    "nextn.shared_head_head.weight",
};

/// Returns a name without "model." in front.
std::string_view bare(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  return name.substr(name.starts_with(kModel) ? kModel.size() : 0);
}

/// Returns the prefix of `name` that is not the text's, up to its first point after "model."; empty if it is the
/// text's.
std::string_view other_part(std::string_view name) {
  const std::string_view rest = bare(name);
  if (!std::ranges::any_of(kOtherParts, [&](std::string_view part) { return rest.starts_with(part); })) return {};
  return name.substr(0, name.size() - rest.size() + std::min(rest.find('.'), rest.size()));
}

/// Returns the last layer of the text whose weights and biases have the names of those of the layer that stands apart.
std::optional<std::uint32_t> layer_like_apart(const LoadedModel& model) {
  std::set<std::string_view> apart;
  std::vector<std::set<std::string_view>> layers(model.config.n_layers);
  for (const LoadedTensor& tensor : model.tensors) {
    std::string_view name = bare(tensor.name);
    if (!name.ends_with(".weight") && !name.ends_with(".bias")) continue;
    const std::string_view of_apart = kApart.front().long_form;
    if (name.starts_with(of_apart)) apart.insert(name.substr(of_apart.size()));
    constexpr std::string_view kLayers = "layers.";
    if (!name.starts_with(kLayers)) continue;
    name.remove_prefix(kLayers.size());
    std::uint32_t layer = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), layer);
    if (end.ec != std::errc() || layer >= layers.size()) continue;
    layers[layer].insert(name.substr(static_cast<std::size_t>(end.ptr - name.data()) + 1));
  }
  const auto like = std::find(layers.rbegin(), layers.rend(), apart);
  if (apart.empty() || like == layers.rend()) return {};
  return static_cast<std::uint32_t>(layers.rend() - like - 1);
}

/// Names a layer that guesses and stands apart as one after those of the text, if it is like one of them.
void place_guess_layer(LoadedModel& out) {
  const auto joins = [](const LoadedTensor& tensor) { return bare(tensor.name) == "mtp.fc.weight"; };
  if (!std::ranges::any_of(out.tensors, joins)) return;
  out.config.guess_like = layer_like_apart(out);
  if (!out.config.guess_like) return;
  out.config.n_guessing = std::max(out.config.n_guessing, 1u);
  const std::string layer = "model.layers." + std::to_string(out.config.n_layers) + ".";
  for (LoadedTensor& tensor : out.tensors) {
    const std::string name(bare(tensor.name));
    const auto* const prefix =
        std::ranges::find_if(kApart, [&](const Prefix& p) { return name.starts_with(p.long_form); });
    if (prefix != kApart.end()) {
      tensor.name = layer + std::string(prefix->short_form) + name.substr(prefix->long_form.size());
    }
  }
}

/// Removes the tensors for which part(name) is not empty. Warns with the number of tensors of each part.
template <class Part>
void leave_out(LoadedModel& out, std::string_view what, Part part) {
  std::map<std::string, std::size_t, std::less<>> counts;
  std::erase_if(out.tensors, [&](const LoadedTensor& tensor) {
    const std::string_view of = part(tensor.name);
    if (!of.empty()) ++counts[std::string(of)];
    return !of.empty();
  });
  if (counts.empty()) return;
  std::size_t n = 0;
  std::string names;
  for (const auto& [name, count] : counts) {
    n += count;
    names += (names.empty() ? "" : ", ") + name + " (" + std::to_string(count) + ")";
  }
  out.warnings.push_back(std::to_string(n) + (n == 1 ? " tensor" : " tensors") + " of " + std::string(what) +
                         " are left out: " + names);
}

}  // namespace

Json text_part(const Json& config) {
  const Json* part = find(config, "text_config");
  if (!part || !part->is_object()) return config;
  Json text = *part;
  for (const char* key :
       {"model_type", "bos_token_id", "eos_token_id", "pad_token_id", "tie_word_embeddings", "quantization_config"}) {
    if (const Json* whole = find(config, key); whole && !find(text, key)) text[key] = *whole;
  }
  return text;
}

void take_text_tensors(LoadedModel& out) {
  leave_out(out, "images and sound", other_part);
  for (LoadedTensor& tensor : out.tensors) {
    const auto* const prefix = std::ranges::find_if(
        kTextPrefixes, [&](const Prefix& p) { return std::string_view(tensor.name).starts_with(p.long_form); });
    if (prefix != kTextPrefixes.end()) tensor.name.replace(0, prefix->long_form.size(), prefix->short_form);
  }
}

void take_guess_layer(LoadedModel& out) {
  ModelConfig& config = out.config;
  place_guess_layer(out);
  config.guess_layer = config.n_guessing != 0 && has_tensor(out, Role::guess_join, config.n_layers);
  std::string layers;
  for (const TensorName& line : out.recipe->tensors) {
    const bool of_layers = layers.empty() && rule_of(line.role).scope == RoleScope::layer;
    if (of_layers) layers = of_layer(line.names.in(out.naming), out.config.n_layers);
  }
  const std::string first = std::to_string(out.config.n_layers);
  const std::string_view before = std::string_view(layers).substr(0, layers.find(first));
  if (config.guess_layer) {
    leave_out(out, "copies in the layer that guesses further tokens", [&](std::string_view name) -> std::string_view {
      if (!name.starts_with(before) || !name.substr(before.size()).starts_with(first + ".")) return {};
      const std::string_view rest = name.substr(before.size() + first.size() + 1);
      return std::ranges::count(kCopies, rest) != 0 ? rest : std::string_view();
    });
  }
  leave_out(out, "heads that guess further tokens", [&](std::string_view name) -> std::string_view {
    for (std::uint32_t i = config.guess_layer ? 1 : 0; i < config.n_guessing; ++i) {
      const std::string layer = std::to_string(config.n_layers + i) + ".";
      if (name.starts_with(before) && name.substr(before.size()).starts_with(layer)) {
        return name.substr(0, before.size() + layer.size() - 1);
      }
    }
    for (const std::string_view part : kGuessingParts) {
      if (name.starts_with(part) && places_of_name(*out.recipe, out.naming, name).empty()) {
        return part.substr(0, part.find_last_not_of("._") + 1);
      }
    }
    return {};
  });
}

}  // namespace qsf::convert
