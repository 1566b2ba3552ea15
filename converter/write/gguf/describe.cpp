#include "converter/write/gguf/describe.h"

#include <algorithm>
#include <cmath>

#include "converter/recipes/settings.h"
#include "converter/types/gguf_keys.h"
#include "qsf/base/exact.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::convert {
namespace {

using namespace gguf_key;

/// Writes keys and their values, each key once.
class Describer {
 public:
  Describer(const LoadedModel& model, const Header& header, const LayerTableBuilder& layers, GgufFront& front)
      : model_(model), recipe_(*model.recipe), header_(header), layers_(layers), front_(front) {}

  void sizes() {
    std::size_t i = 0;
    visit_sizes(header_, [&](const LayerKey& size, std::uint32_t value) {
      const std::string& key = recipe_.sizes[i++].keys.gguf;
      if (key.empty() || front_.has(prefixed(key))) return;
      const bool of_layers = std::ranges::find(kLayerKeys, size.name, &LayerKey::name) != kLayerKeys.end();
      if (!of_layers || same_everywhere(size.name)) return front_.number(prefixed(key), value);
      std::vector<std::int32_t> list;
      for (const std::uint8_t kind : layers_.of_layer) {
        list.push_back(static_cast<std::int32_t>(number_of(layers_.kinds[kind], size.name)));
      }
      front_.numbers(prefixed(key), list);
    });
  }

  /// Writes the recipe's settings. Real numbers are left out if they equal the value for a missing key.
  void settings() {
    for (const Setting& setting : recipe_.layers.every) {
      put(setting.value, layer_forms()[setting.key], number_of(usual(), kLayerKeys[setting.key].name));
    }
    for (const Setting& setting : recipe_.layers.model) {
      double number = 0;
      visit_model_keys(layers_.model, [&](const LayerKey& key, auto member) {
        if (key.name == kModelKeys[setting.key].name) number = static_cast<double>(member);
      });
      put(setting.value, model_forms()[setting.key], number);
    }
  }

  void attention() {
    const ModelConfig& config = model_.config;
    if (!recipe_.sets("norm_epsilon")) front_.number(prefixed(kNormEpsilon), usual().norm_epsilon);
    front_.number(prefixed(kValueLength), usual().head_dim);
    front_.number(prefixed(kRopeDims), config.rope_dims.value_or(usual().head_dim));
    front_.number(prefixed(kRopeBase), config.rope_theta);
    if (const auto shared = recipe_.shared_kv.gguf; !shared.empty()) {
      const auto n = std::ranges::count_if(layers_.of_layer, [&](auto k) { return layers_.kinds[k].kv_from != 0; });
      front_.number(prefixed(shared), static_cast<std::uint32_t>(n));
    }
    if (config.guess_layer) front_.number(prefixed(kGuessingLayers), 1u);
    windows();
    const std::vector<float>& divisors = config.rope_divisors;
    if (const std::uint32_t from = layers_.model.long_rope_from; from != 0) {
      front_.text(prefixed(kScalingType), "longrope");
      front_.number(prefixed(kOriginalContext), from);
      front_.number(prefixed(kRotatedFactor), config.rope_scale);
      return;
    }
    if (divisors.empty() || !frequencies_to_write(config).empty()) return;
    front_.text(prefixed(kScalingType), "linear");
    front_.number(prefixed(kScalingFactor), divisors.front());
  }

 private:
  std::string prefixed(std::string_view key) const { return (recipe_.gguf_name + ".").append(key); }
  const LayerKind& usual() const { return layers_.kinds[layers_.of_layer.front()]; }

  static double number_of(const LayerKind& kind, std::string_view name) {
    double number = 0;
    visit_layer_keys(kind, [&](const LayerKey& key, auto member) {
      if (key.name == name) number = static_cast<double>(member);
    });
    return number;
  }
  bool same_everywhere(std::string_view name) const {
    return std::ranges::all_of(
        layers_.kinds, [&](const LayerKind& kind) { return number_of(kind, name) == number_of(usual(), name); });
  }

  void put(const Value& value, const KeyForm& form, double number) {
    const std::string key = prefixed(value.keys.gguf);
    if (value.keys.gguf.empty() || front_.has(key)) return;
    const std::optional<double> without = value.gguf_number ? value.gguf_number : value.number;
    if (form.real && without && *without == number) return;
    if (value.power != 1) number = exact::pow(number, 1 / value.power);
    if (!form.real && form.key.most == 1) return front_.flag(key, number != 0);
    if (form.real) return front_.number(key, static_cast<float>(number));
    front_.number(key, static_cast<std::uint32_t>(number));
  }

  /// Other programs search for windows only if they expect a pattern of layers: the recipe's full_every.
  void windows() {
    std::uint32_t window = 0;
    float local_base = 0;
    for (const LayerKind& kind : layers_.kinds) {
      window = std::max(window, kind.window);
      if (kind.window != 0) local_base = kind.rope_theta;
    }
    if (window == 0 || recipe_.full_every == 0) return;
    front_.number(prefixed(kWindow), usual().bidirectional != 0 ? 2 * (window - 1) : window);
    const double taken = recipe_.local_theta != 0 ? recipe_.local_theta : double{model_.config.rope_theta};
    if (local_base != static_cast<float>(taken)) front_.number(prefixed(kLocalRopeBase), local_base);
  }

  const LoadedModel& model_;
  const Recipe& recipe_;
  const Header& header_;
  const LayerTableBuilder& layers_;
  GgufFront& front_;
};

std::string token_key(std::string_view key) { return std::string(kTokenizer).append(key); }

/// Returns GGUF's name of the source's pre-tokenizer, with the same treatment of merges.
Result<std::string_view> pretokenizer_name(const TokenizerSource& source) {
  for (const GgufPretokenizer& each : kGgufPretokenizers) {
    if (each.name == source.pattern) return each.name;
  }
  for (const Pretokenizer& known : kPretokenizers) {
    std::string joined;
    for (const std::string_view step : known.steps) {
      if (!joined.empty() && !step.empty()) joined += '\n';
      joined += step;
    }
    if (joined != source.pattern) continue;
    for (const GgufPretokenizer& each : kGgufPretokenizers) {
      if (each.id == known.id && each.ignore_merges == source.ignore_merges) return each.name;
    }
  }
  return make_error(ErrorCode::unsupported, "GGUF has no name for the tokenizer's pre-tokenizer \"{:.160}\"",
                    source.pattern);
}

}  // namespace

std::vector<float> frequencies_to_write(const ModelConfig& config) {
  const std::vector<float>& all = config.rope_divisors;
  if (all.empty() || std::ranges::adjacent_find(all, std::ranges::not_equal_to()) == all.end()) return {};
  return all;
}

void describe_model(const LoadedModel& model, const Header& header, const LayerTableBuilder& layers, GgufFront& front) {
  front.text(std::string(kArchitecture), model.recipe->gguf_name);
  if (!model.config.name.empty()) front.text(std::string(kName), model.config.name);
  Describer describer(model, header, layers, front);
  describer.sizes();
  describer.settings();
  describer.attention();
}

Status describe_tokenizer(const LoadedModel& model, GgufFront& front) {
  const ModelConfig& config = model.config;
  const auto token = [&](std::string_view key, std::uint32_t id) {
    if (id != kNoToken && !front.has(token_key(key))) front.number(token_key(key), id);
  };
  if (!model.tokenizer) {
    front.text(token_key(kModel), "no_vocab");
  } else {
    const TokenizerSource& source = *model.tokenizer;
    front.text(token_key(kModel), std::ranges::find(kTokenizerNames, source.kind, &TokenizerName::kind)->name);
    const bool bytes = source.kind == TokenizerKind::byte_bpe;
    if (bytes) {
      QSF_LET(name, pretokenizer_name(source));
      front.text(token_key(kPre), name);
    }
    std::vector<std::string> texts, merges;
    std::vector<float> scores;
    std::vector<std::int32_t> types;
    for (const TokenizerSource::Token& each : source.tokens) {
      // Other programs need all texts to be different.
      const bool unused = each.type == TokenType::unused && each.text.empty();
      texts.push_back(unused ? "[PAD" + std::to_string(texts.size()) + "]" : each.text);
      scores.push_back(each.score);
      types.push_back(static_cast<std::int32_t>(each.type));
    }
    front.texts(token_key(kTokens), texts);
    if (!bytes) front.numbers(token_key(kScores), scores);
    front.numbers(token_key(kTokenTypes), types);
    for (const auto& [left, right] : source.merges) merges.push_back((left + " ").append(right));
    if (bytes) front.texts(token_key(kMerges), merges);
    front.flag(token_key(kAddBos), source.add_bos);
    front.flag(token_key(kAddEos), source.add_eos);
    if (!bytes) front.flag(token_key(kAddSpace), source.add_space_prefix);
    if (source.kind == TokenizerKind::unigram) front.flag(token_key(kTrimSpaces), source.trim_spaces);
    for (const NormalizerStep& step : source.normalizer) {
      if (has_char_map(step.op)) front.bytes(token_key(kCharMap), step.to);
    }
    const auto unknown = std::ranges::find(source.tokens, TokenType::unknown, &TokenizerSource::Token::type);
    if (unknown != source.tokens.end()) {
      token(kUnknown, static_cast<std::uint32_t>(unknown - source.tokens.begin()));
    }
    if (source.kind == TokenizerKind::wordpiece) {
      token(kCls, source.bos.value_or(kNoToken));
      token(kSep, source.eos.value_or(kNoToken));
    }
  }
  token(kBos, config.bos);
  token(kEos, config.eos);
  token(kPad, config.pad);
  std::size_t n = 0;
  for (const std::uint32_t end : config.all_eos) {
    if (end != config.eos && n < kOtherEnds.size()) token(kOtherEnds[n++], end);
  }
  for (const auto& [key, text] : model.chat) {
    if (!model.tokenizer || !key.starts_with(kMetaChatTemplate)) continue;
    front.text(std::string(kChatTemplate).append(key.substr(kMetaChatTemplate.size())), text);
  }
  return {};
}

}  // namespace qsf::convert
