#include <algorithm>

#include "file/encode.h"
#include "qsf/base/heap_sort.h"

namespace qsf {

Result<std::vector<std::byte>> encode_meta(std::span<const MetaEntry> meta) {
  std::vector<const MetaEntry*> sorted;
  for (const MetaEntry& entry : meta) sorted.push_back(&entry);
  heap_sort(sorted, {}, &MetaEntry::key);
  std::vector<std::byte> out;
  append(out, static_cast<std::uint32_t>(sorted.size()));
  for (const MetaEntry* entry : sorted) {
    if (entry->key.size() > UINT16_MAX || entry->text.size() > kMaxMetaText) {
      return make_error(ErrorCode::bad_argument, "metadata {:.60}: the key is longer than {} bytes or the text than {}",
                        entry->key, UINT16_MAX, kMaxMetaText);
    }
    const bool is_long = entry->text.size() > UINT16_MAX;
    append(out, static_cast<std::uint16_t>(entry->key.size()));
    append(out, std::string_view(entry->key));
    append(out, entry->type == MetaType::text && is_long ? MetaType::long_text : entry->type);
    if (entry->type == MetaType::u32) append(out, entry->u32);
    if (entry->type == MetaType::f32) append(out, entry->f32);
    if (entry->type == MetaType::text) {
      if (is_long) append(out, static_cast<std::uint32_t>(entry->text.size()));
      if (!is_long) append(out, static_cast<std::uint16_t>(entry->text.size()));
      append(out, std::string_view(entry->text));
    }
  }
  QSF_LET(reader, MetaReader::open(out));
  for (MetaValue value;;) {
    QSF_LET(more, reader.next(value));
    if (!more) return out;
  }
}

}  // namespace qsf
