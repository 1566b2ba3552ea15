#include "converter/plan/metadata.h"

namespace qsf::convert {

std::vector<MetaEntry> metadata_of(const LoadedModel& model, const LayerKind& usual) {
  std::vector<MetaEntry> meta;
  if (model.file) {
    for (const MetaEntry& entry : model.file->meta) {
      if (model.tokenizer || !entry.key.starts_with(kMetaChatTokens)) meta.push_back(entry);
    }
    return meta;
  }
  const auto text = [&](std::string_view key, std::string value) {
    meta.push_back({std::string(key), MetaType::text, 0, 0, std::move(value)});
  };
  meta.push_back({std::string(kMetaNormEpsilon), MetaType::f32, 0, usual.norm_epsilon, {}});
  if (usual.window != 0) {
    meta.push_back({std::string(kMetaWindow), MetaType::u32, usual.window, 0, {}});
  }
  text(kMetaArchitecture, std::string(model.recipe->name));
  if (!model.config.name.empty()) text(kMetaName, model.config.name);
  text("general.source", model.kind);
  if (model.config.all_eos.size() > 1) {
    text(kMetaEndTokens, list_of<std::uint32_t>(model.config.all_eos));
  }
  if (model.tokenizer) {
    for (const auto& [key, value] : model.chat) text(key, value);
  }
  return meta;
}

}  // namespace qsf::convert
