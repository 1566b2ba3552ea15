#include "native/run/option_rules.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "native/cli/names.h"
#include "native/cli/scores.h"
#include "native/run/digest.h"
#include "native/run/kernels.h"
#include "native/sources/address.h"
#include "native/sources/ascii.h"
#include "qsf/base/utf8.h"
#include "qsf/chat/conversation.h"
#include "qsf/formats/format.h"
#include "qsf/grammar/grammar.h"

namespace qsf::run {
namespace {

/// Names that they have for types of keys and values.
constexpr std::array<std::pair<std::string_view, KvType>, 3> kCacheTypes{
    {{"q8_0", KvType::q8}, {"q4_0", KvType::q4}, {"q4_1", KvType::q4}}};

bool same_but_case(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower, lower); }

/// Reads ids such as "1,2,3".
bool read_ids(std::string_view text, std::vector<std::uint32_t>& out) {
  while (true) {
    std::uint32_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc()) return false;
    out.push_back(id);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return true;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
}

/// Returns where a conversation has a variable of its template from, or null for one that is free.
const char* owner_of(std::string_view name) {
  if (name == "messages") return "they are the conversation's";
  if (name == "tools") return "they are those of --tools";
  if (name == "add_generation_prompt") return "an answer is asked for";
  const bool is_token = std::ranges::find(chat::kSpecialTokens, name) != chat::kSpecialTokens.end();
  return is_token ? "the special tokens are the model's" : nullptr;
}

/// Reserves the usual bytes of a grammar over a large vocabulary, or of a template that the file does not have.
void reserve_texts(Options& o) {
  constexpr std::uint32_t kOfTemplate = 4u << 20, kOfGrammar = 24u << 20;  // bytes
  if (o.host.open.text_bytes != 0) return;
  if (!o.template_file.empty()) o.host.open.text_bytes = kOfTemplate;
  if (o.has_grammar() || !o.tool_choice.empty()) {
    o.host.open.text_bytes = kOfGrammar + (o.answers - 1) * static_cast<std::uint32_t>(grammar::Grammar::kMemory);
  }
}

}  // namespace

std::vector<std::string_view> source_names() {
  std::vector<std::string_view> names;
  for (const SourceKind* kind : source_kinds()) {
    if (!kind->url) names.push_back(kind->name);
  }
  return names;
}

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

std::optional<std::string> embedding_mistake(Options& o, const std::string& pooling, const std::string& normalize) {
  if (!pooling.empty()) {
    const auto* at = std::find(kPoolingNames.begin(), kPoolingNames.end(), pooling);
    if (at == kPoolingNames.end()) return "there is no pooling '" + pooling + "', only " + joined(kPoolingNames);
    o.pooling = static_cast<Pooling>(at - kPoolingNames.begin());
  }
  if (!normalize.empty()) {
    const auto* at = std::find(kYesNo.begin(), kYesNo.end(), normalize);
    if (at == kYesNo.end()) return "--normalize is yes or no, not '" + normalize + "'";
    o.normalize = at != kYesNo.begin();
  }
  return std::nullopt;
}

std::optional<std::string> reranking_mistake(const Options& o) {
  if (o.mode == Mode::rerank && o.prompt) return kRerankTakes;  // documents are in a file
  return std::nullopt;
}

std::optional<std::string> cache_mistake(Options& o, std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    const auto own = std::ranges::find(kKvNames, name);
    const auto other =
        std::ranges::find(kCacheTypes, std::string_view(name), &decltype(kCacheTypes)::value_type::first);
    if (own == kKvNames.end() && other == kCacheTypes.end()) {
      return "there is no KV type '" + name + "', only " + joined(kKvNames);
    }
    const KvType type = other != kCacheTypes.end() ? other->second : static_cast<KvType>(own - kKvNames.begin());
    if (o.host.open.kv && *o.host.open.kv != type)
      return "keys and values have the same type by these options: give both the same one, or --kv a pair such as k8v4";
    o.host.open.kv = type;
  }
  return std::nullopt;
}

std::optional<std::string> grammar_mistake(const Options& o) {
  const int grammars = (o.grammar_file.empty() ? 0 : 1) + (o.schema_file.empty() ? 0 : 1) + (o.regex.empty() ? 0 : 1);
  if (grammars > 1) return "--grammar, --json-schema and --regex exclude each other";
  if (grammars == 0 && o.mode == Mode::accepts) return "--accepts needs --grammar, --json-schema or --regex";
  return std::nullopt;
}

std::optional<std::string> mistake(Options& o, const std::string& tokens) {
  if (const std::optional<std::string> wrong = grammar_mistake(o)) return wrong;
  if (!tokens.empty() && !read_ids(tokens, o.tokens)) return "--tokens takes ids such as 1,2,3, not '" + tokens + "'";
  if (const std::optional<std::string> wrong = group_mistake(o)) return wrong;
  if (o.mode == Mode::accepts && !o.of_model.empty()) return kAcceptsTakes;
  if (!o.prompt_cache.empty() && o.continues()) return kBeginsText;
  if (o.answers > 1 && !o.session_file.empty()) {
    return "--answers makes several texts of one prompt, and --session saves the one that goes on: they exclude each "
           "other";
  }
  reserve_texts(o);
  const bool renders = o.mode == Mode::render;
  if ((!o.converses() || renders) && !(o.tools_file.empty() && o.shows_thoughts && !o.limits_thoughts())) {
    return kThoughtsTake;
  }
  if (!o.files.empty() && (!o.converses() || renders)) {
    return "--file is for --chat, --message and --system-prompt; --prompt-file (-f) is a file with the prompt";
  }
  if (!o.tool_choice.empty() && o.tools_file.empty()) return "--tool-choice needs --tools";
  if (!o.tool_choice.empty() && o.has_grammar()) {
    return "--tool-choice holds calls, and --grammar, --json-schema and --regex hold texts: they exclude each other";
  }
  if (!o.converses() && !(o.template_file.empty() && o.template_arguments.empty())) {
    return "--chat-template and --template-arg are for --chat, --message, --system-prompt and --render";
  }
  std::set<std::string_view> named;
  for (const std::string& argument : o.template_arguments) {
    const std::size_t at = argument.find('=');
    if (at == 0 || at == std::string::npos) return "--template-arg takes NAME=VALUE, not '" + argument + "'";
    if (!utf8::is_valid(argument)) return "--template-arg takes UTF-8, not '" + argument + "'";
    const std::string_view name = std::string_view(argument).substr(0, at);
    if (const char* const whose = renders ? nullptr : owner_of(name)) {
      return "--template-arg cannot replace " + std::string(name) + ": " + whose;
    }
    if (!named.insert(name).second) return "--template-arg " + std::string(name) + " is given twice";
  }
  if (o.model.empty() && renders && o.counts) return "--count needs MODEL, whose tokens it counts";
  if (o.mode == Mode::accepts) return std::nullopt;
  if (o.model.empty() && (!renders || o.template_file.empty())) {
    return renders ? "--render needs MODEL or --chat-template"
                   : "MODEL is needed: a .qsf file or its http(s) URL, a GGUF file, or a Hugging Face directory";
  }
  if (o.model.empty() && !o.of_model.empty()) return o.of_model + " needs MODEL";
  if (!o.sha256.empty() && !is_digest(o.sha256)) return "--sha256 takes 64 hexadecimal digits, not '" + o.sha256 + "'";
  if (o.isa.empty()) o.isa = isa_from_environment();
  if (!o.isa.empty() && !contains(instruction_sets(), o.isa)) {
    return "there is no instruction set '" + o.isa + "' here, only " + joined(instruction_sets());
  }
  for (const std::string_view name : format_names()) {
    if (same_but_case(name, o.quant_type)) o.quant_type = name;
  }
  if (!o.quant_type.empty() && !contains(format_names(), o.quant_type)) {
    return "there is no type '" + o.quant_type + "', only " + joined(format_names());
  }
  if (!o.source.empty()) {
    if (!contains(source_names(), o.source)) {
      return "there is no source '" + o.source + "', only " + joined(source_names());
    }
    if (is_address(o.model)) return "--source is for files, and the model is on a server";
  }
  if (o.host.source.leave_https && !is_address(o.model) && !is_address(o.speculate)) {
    return "--leave-https is for models on servers, and the model is in files";
  }
  if (o.prompt && !o.prompt_file.empty()) return "--prompt and --prompt-file exclude each other";
  const bool text = o.prompt || !o.prompt_file.empty();
  if (text && !o.tokens.empty()) return "--prompt and --tokens exclude each other";
  const int ways = (text ? 1 : 0) + (o.tokens.empty() ? 0 : 1) + (o.texts.empty() ? 0 : 1);
  if (ways > 1) return "--embed takes texts in one way only";
  if (o.system_prompt && !o.tokens.empty()) return kSystemTakes;
  if (o.mode == Mode::perplexity && o.window < kLeastWindow) {
    return "--window takes at least " + std::to_string(kLeastWindow) + " tokens, of which one is counted";
  }
  if (o.mode == Mode::perplexity && o.host.open.max_seq_len != 0 && o.window > o.host.open.max_seq_len) {
    return "--window is longer than --max-seq-len";
  }
  if (o.mode == Mode::detokenize && o.tokens.empty()) return kDetokenizeTakes;
  if (o.logprobs && o.receipt_file.empty()) return kLogprobsNeed;
  return std::nullopt;
}

}  // namespace qsf::run
