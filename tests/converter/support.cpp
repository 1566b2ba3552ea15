#include "converter/support.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "converter/readers/inputs.h"
#include "qsf/base/half.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/formats/format.h"
#include "system/file.h"

namespace qsf::test {

namespace fs = std::filesystem;

Folder::Folder() {
  static int n = 0;
  const std::string name = "qsf-converter-" + std::to_string(sys::process_number()) + "-" + std::to_string(n++);
  path_ = (fs::temp_directory_path() / name).generic_string();
  fs::create_directories(path_);
}
Folder::~Folder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

void write_bytes(const std::string& path, const void* data, std::size_t size) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  ASSERT_TRUE(out.good()) << path;
}

void copy_folder(const std::string& from, const std::string& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.is_directory()) {
      copy_folder(entry.path().string(), (fs::path(to) / entry.path().filename()).string());
      continue;
    }
    fs::copy_file(entry.path(), fs::path(to) / entry.path().filename(), fs::copy_options::overwrite_existing);
    fs::permissions(fs::path(to) / entry.path().filename(), fs::perms::owner_write, fs::perm_options::add);
  }
}

std::map<std::string, Weights> hugging_face_weights(const std::string& directory) {
  std::map<std::string, Weights> out;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".safetensors") continue;
    const Bytes file = read_bytes(entry.path().string());
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), 8);
    const char* text = reinterpret_cast<const char*>(file.data()) + 8;
    const nlohmann::json json = nlohmann::json::parse(text, text + header);
    for (const auto& [name, tensor] : json.items()) {
      if (name == "__metadata__") continue;
      const auto shape = tensor["shape"].get<std::vector<std::uint32_t>>();
      const std::byte* at = file.data() + 8 + header + tensor["data_offsets"][0].get<std::uint64_t>();
      Weights w{shape.size() == 2 ? shape[0] : 1, shape.back(), {}};
      w.values.resize(std::size_t{w.rows} * w.cols);
      const std::string type = tensor["dtype"];
      for (std::size_t i = 0; i < w.values.size(); ++i) {
        std::uint16_t half = 0;
        if (type == "F32") {
          std::memcpy(&w.values[i], at + 4 * i, 4);
        } else {
          std::memcpy(&half, at + 2 * i, 2);
          w.values[i] = type == "F16" ? f16_to_f32(half) : bf16_to_f32(half);
        }
      }
      out[name] = std::move(w);
    }
  }
  return out;
}

nlohmann::json read_config(const std::string& directory) {
  const Bytes bytes = read_bytes(directory + "/config.json");
  const char* text = reinterpret_cast<const char*>(bytes.data());
  return nlohmann::json::parse(text, text + bytes.size());
}

std::string hugging_face_name(Role role, std::uint32_t layer) {
  const std::string front = "model.layers." + std::to_string(layer) + ".";
  switch (role) {
    case Role::attn_q:
      return front + "self_attn.q_proj.weight";
    case Role::attn_k:
      return front + "self_attn.k_proj.weight";
    case Role::attn_v:
      return front + "self_attn.v_proj.weight";
    case Role::attn_o:
      return front + "self_attn.o_proj.weight";
    case Role::ffn_gate:
      return front + "mlp.gate_proj.weight";
    case Role::ffn_up:
      return front + "mlp.up_proj.weight";
    case Role::ffn_down:
      return front + "mlp.down_proj.weight";
    case Role::attn_norm:
      return front + "input_layernorm.weight";
    case Role::ffn_norm:
      return front + "post_attention_layernorm.weight";
    case Role::attn_q_bias:
      return front + "self_attn.q_proj.bias";
    case Role::attn_k_bias:
      return front + "self_attn.k_proj.bias";
    case Role::attn_v_bias:
      return front + "self_attn.v_proj.bias";
    case Role::attn_o_bias:
      return front + "self_attn.o_proj.bias";
    case Role::attn_q_norm:
      return front + "self_attn.q_norm.weight";
    case Role::attn_k_norm:
      return front + "self_attn.k_norm.weight";
    case Role::token_embd:
      return "model.embed_tokens.weight";
    case Role::final_norm:
      return "model.norm.weight";
    case Role::head:
      return "lm_head.weight";
    default:
      return "?";
  }
}

LayerTableBuilder Written::layers() const {
  const auto bytes = [this](std::uint32_t tag) {
    const SectionEntry* const section = find_section(tables.sections, tag);
    return section ? std::span(file).subspan(section->offset, section->size) : std::span<const std::byte>();
  };
  Result<LayerTableBuilder> table = load_layer_table(tables.header, bytes(kTagMeta), bytes(kTagLayers));
  EXPECT_TRUE(table) << table.error().sentence;
  return table ? *table : LayerTableBuilder{};
}

std::vector<float> Written::section_floats(std::uint32_t tag) const {
  const SectionEntry* section = find_section(tables.sections, tag);
  if (!section) return {};
  std::vector<float> out(section->size / sizeof(float));
  std::memcpy(out.data(), file.data() + section->offset, out.size() * sizeof(float));
  return out;
}

Written read_written(const std::string& path) {
  Written out;
  out.file = read_bytes(path);
  const convert::Input file = convert::input_of(path, out.file);
  const Result<convert::Tables> tables = convert::read_tables(file);
  if (!tables) {
    ADD_FAILURE() << path << ": " << tables.error().sentence;
    return out;
  }
  out.tables = *tables;
  std::map<std::uint32_t, Bytes> raw;
  for (std::uint32_t i = 0; i < out.tables.segments.size(); ++i) {
    const Result<Bytes> segment = convert::read_segment(file, out.tables, i);
    if (!segment) {
      ADD_FAILURE() << path << ": " << segment.error().sentence;
      return out;
    }
    Bytes& section = raw[out.tables.segments[i].stage];
    section.insert(section.end(), segment->begin(), segment->end());
  }
  for (const TensorEntry& tensor : out.tables.tensors) {
    const Format& format = *find_format(tensor.format);
    const std::span<const std::byte> data =
        std::span(raw[tensor.stage])
            .subspan(tensor.raw_offset, tensor_bytes(format, tensor.layout, tensor.rows, tensor.cols));
    Weights w{tensor.rows, tensor.cols, std::vector<float>(std::size_t{tensor.rows} * tensor.cols)};
    const std::uint64_t row_size = row_bytes(format, tensor.cols);
    for (std::uint32_t r = 0; r < tensor.rows; ++r) {
      const std::span<float> row = std::span(w.values).subspan(std::size_t{r} * tensor.cols, tensor.cols);
      if (tensor.layout == Layout::tiles) {
        const std::uint64_t strip = 16 * row_size;
        dequantize_tile_row(format, data.subspan(r / 16 * strip, strip), r % 16, row);
      } else {
        dequantize_row(format, data.subspan(r * row_size, row_size), row);
      }
    }
    out.weights[{tensor.stage, tensor.role}] = std::move(w);
  }
  return out;
}

Result<convert::Summary> convert_file(const convert::LoadedModel& model, const convert::Options& options,
                                      const std::string& path) {
  QSF_LET(conversion, convert::Conversion::begin(model, options, path));
  for (;;) {
    QSF_LET(step, conversion.step());
    if (step == convert::Conversion::Step::done) return conversion.summary();
  }
}

Written convert(const std::string& from, const convert::Options& options) {
  const Folder folder;
  const Result<convert::LoadedModel> model = convert::open_model(from);
  if (!model) {
    ADD_FAILURE() << from << ": " << model.error().sentence;
    return {};
  }
  const std::string path = folder.path("model.qsf");
  const Result<convert::Summary> summary = convert_file(*model, options, path);
  if (!summary) {
    ADD_FAILURE() << from << ": " << summary.error().sentence;
    return {};
  }
  Written out = read_written(path);
  EXPECT_EQ(out.file.size(), summary->file_bytes);
  return out;
}

Error convert_error(const std::string& from, const convert::Options& options) {
  const Result<convert::LoadedModel> model = convert::open_model(from);
  if (!model) return model.error();
  const Folder folder;
  const Result<convert::Summary> summary = convert_file(*model, options, folder.path("model.qsf"));
  if (!summary) return summary.error();
  ADD_FAILURE() << from << " converted, though it is damaged";
  return {};
}

}  // namespace qsf::test
