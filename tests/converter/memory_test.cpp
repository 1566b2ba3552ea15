// Models of 200 MB and more in every kind of input, none of which may be held: files of zeros that take no room.
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "native/process.h"
#include "support/pickle.h"

#ifndef QSF_SANITIZED  // a sanitizer keeps its own memory beside
namespace qsf::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDim = 1024, kFfn = 4096, kLayers = 2, kHeads = 8, kVocab = 16000, kLength = 64;

struct Tensor {
  std::string name, gguf;
  std::vector<std::int64_t> shape;
  std::uint64_t elements() const {
    std::uint64_t n = 1;
    for (const std::int64_t extent : shape) n *= static_cast<std::uint64_t>(extent);
    return n;
  }
};

std::vector<Tensor> tensors() {
  std::vector<Tensor> out{{"model.embed_tokens.weight", "token_embd.weight", {kVocab, kDim}}};
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string hf = "model.layers." + std::to_string(layer) + ".", gguf = "blk." + std::to_string(layer) + ".";
    const auto add = [&](const char* name, const char* other, std::vector<std::int64_t> shape) {
      out.push_back({hf + name + ".weight", gguf + other + ".weight", std::move(shape)});
    };
    add("input_layernorm", "attn_norm", {kDim});
    add("self_attn.q_proj", "attn_q", {kDim, kDim});
    add("self_attn.k_proj", "attn_k", {kDim, kDim});
    add("self_attn.v_proj", "attn_v", {kDim, kDim});
    add("self_attn.o_proj", "attn_output", {kDim, kDim});
    add("post_attention_layernorm", "ffn_norm", {kDim});
    add("mlp.gate_proj", "ffn_gate", {kFfn, kDim});
    add("mlp.up_proj", "ffn_up", {kFfn, kDim});
    add("mlp.down_proj", "ffn_down", {kDim, kFfn});
  }
  out.push_back({"model.norm.weight", "output_norm.weight", {kDim}});
  return out;
}

/// Written front to back, with holes.
class Sparse {
 public:
  explicit Sparse(const std::string& path) : path_(path), file_(path, std::ios::binary) {}
  ~Sparse() {
    file_.close();
    fs::resize_file(path_, at_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  void write(const Bytes& bytes) {
    file_.seekp(static_cast<std::streamoff>(at_));
    file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    at_ += bytes.size();
  }
  void skip(std::uint64_t n) { at_ += n; }

 private:
  std::string path_;
  std::ofstream file_;
  std::uint64_t at_ = 0;
};

std::string write_config(const Folder& folder) {
  const nlohmann::json config{{"model_type", "llama"},
                              {"hidden_size", kDim},
                              {"intermediate_size", kFfn},
                              {"num_hidden_layers", kLayers},
                              {"num_attention_heads", kHeads},
                              {"vocab_size", kVocab},
                              {"max_position_embeddings", kLength},
                              {"rms_norm_eps", 1e-5},
                              {"tie_word_embeddings", true}};
  write_text(folder.path("config.json"), config.dump());
  return folder.path();
}

std::string write_safetensors(const Folder& folder) {
  nlohmann::json header;
  std::uint64_t at = 0;
  for (const Tensor& tensor : tensors()) {
    const std::uint64_t end = at + 4 * tensor.elements();
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  Sparse file(folder.path("model.safetensors"));
  Bytes front;
  put_text(front, header.dump());
  file.write(front);
  file.skip(at);
  return write_config(folder);
}

/// Every tensor a storage of its own; matrices are views of what is stored turned, where `turned`.
Bytes state_dictionary(bool legacy, bool turned) {
  PickleWriter out;
  out.raw("}(");
  std::int64_t key = 0;
  for (const Tensor& tensor : tensors()) {
    std::vector<std::int64_t> strides{1};
    if (tensor.shape.size() == 2) {
      strides = turned ? std::vector<std::int64_t>{1, tensor.shape[0]} : std::vector<std::int64_t>{tensor.shape[1], 1};
    }
    out.text(tensor.name)
        .tensor({.key = std::to_string(key++),
                 .n = static_cast<std::int64_t>(tensor.elements()),
                 .shape = tensor.shape,
                 .strides = strides,
                 .legacy = legacy});
  }
  return out.raw("u").stop();
}

std::string write_archive(const Folder& folder) {
  ZipWriter zip;  // holds the whole file, which this program may
  zip.add({.name = "m/data.pkl", .data = state_dictionary(false, false)});
  std::size_t key = 0;
  for (const Tensor& tensor : tensors()) {
    zip.add({.name = "m/data/" + std::to_string(key++), .data = Bytes(4 * tensor.elements()), .alignment = 64});
  }
  write_bytes(folder.path("pytorch_model.bin"), zip.file());
  return write_config(folder);
}

std::string write_legacy(const Folder& folder) {
  Sparse file(folder.path("pytorch_model.bin"));
  Bytes front;
  put_bytes(front, std::string_view(
                       "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.", 25));
  file.write(front);
  file.write(state_dictionary(true, true));
  PickleWriter keys;
  keys.raw("](");
  for (std::size_t i = 0; i < tensors().size(); ++i) keys.text(std::to_string(i));
  file.write(keys.raw("e").stop());
  for (const Tensor& tensor : tensors()) {
    Bytes n;
    put(n, tensor.elements());
    file.write(n);
    file.skip(4 * tensor.elements());
  }
  return write_config(folder);
}

GgufWriter gguf_head() {
  GgufWriter out;
  out.text("general.architecture", "llama");
  for (const auto& [key, value] :
       {std::pair{"block_count", kLayers}, std::pair{"context_length", kLength}, std::pair{"embedding_length", kDim},
        std::pair{"feed_forward_length", kFfn}, std::pair{"attention.head_count", kHeads}}) {
    out.u32(std::string("llama.") + key, static_cast<std::uint32_t>(value));
  }
  out.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  return out;
}

GgufWriter gguf(GgmlType matrices, std::uint64_t block, std::uint64_t block_bytes) {
  GgufWriter out = gguf_head();
  for (const Tensor& tensor : tensors()) {
    const bool matrix = tensor.shape.size() == 2;
    const std::vector<std::uint64_t> shape(tensor.shape.rbegin(), tensor.shape.rend());
    out.tensor(tensor.gguf, matrix ? matrices : GgmlType::f32, shape,
               matrix ? tensor.elements() / block * block_bytes : 4 * tensor.elements());
  }
  return out;
}

std::string write_gguf(const Folder& folder, const GgufWriter& writer, const std::string& name) {
  Sparse file(folder.path(name));
  file.write(writer.head());
  file.skip(writer.data_size());
  return folder.path(name);
}
std::string write_whole_gguf(const Folder& folder) { return write_gguf(folder, gguf(GgmlType::f32, 1, 4), "m.gguf"); }
std::string write_decoded_gguf(const Folder& folder) { return write_gguf(folder, gguf(GgmlType::f64, 1, 8), "m.gguf"); }
std::string write_gguf_parts(const Folder& folder) {
  const std::vector<GgufWriter> parts = gguf(GgmlType::f32, 1, 4).parts(2);
  write_gguf(folder, parts[1], "m-00002-of-00002.gguf");
  return write_gguf(folder, parts[0], "m-00001-of-00002.gguf");
}

std::string write_llama2c(const Folder& folder) {
  Sparse file(folder.path("m.bin"));
  Bytes header;
  for (const std::int64_t n : {kDim, kFfn, kLayers, kHeads, kHeads, kVocab, kLength}) {
    put(header, static_cast<std::int32_t>(n));
  }
  file.write(header);
  for (const Tensor& tensor : tensors()) file.skip(4 * tensor.elements());
  file.skip(static_cast<std::uint64_t>(4 * kLength * kDim / kHeads));
  return folder.path("m.bin");
}

std::string write_checkpoint(const Folder& folder) {
  constexpr std::uint32_t kGroup = 64;
  Sparse file(folder.path("m.bin"));
  Bytes header;
  put<std::uint32_t>(header, 0x616b3432);
  put<std::uint32_t>(header, 2);
  for (const std::int64_t n : {kDim, kFfn, kLayers, kHeads, kHeads, kVocab, kLength}) {
    put(header, static_cast<std::int32_t>(n));
  }
  put<std::uint8_t>(header, 1);
  put(header, kGroup);
  header.resize(256);
  file.write(header);
  for (const Tensor& tensor : tensors()) {
    const std::uint64_t n = tensor.elements();
    file.skip(tensor.shape.size() == 1 ? 4 * n : n + n / kGroup * 4);
  }
  return folder.path("m.bin");
}

std::string write_qsf(const Folder& folder) {
  const Folder from;
  EXPECT_EQ(run({program("qsf-convert"), write_llama2c(from), folder.path("in.qsf"), "--quiet", "--quant-type", "f16",
                 "--tokenizer", "none"})
                .code,
            0);
  return folder.path("in.qsf");
}

struct Maker {
  const char* kind;  // of kInputKinds
  const char* form;
  std::string (*write)(const Folder& folder);
};
constexpr std::array kMakers{
    Maker{"hf", "safetensors", write_safetensors},
    Maker{"hf", "archive", write_archive},
    Maker{"hf", "older layout, turned", write_legacy},
    Maker{"gguf", "whole", write_whole_gguf},
    Maker{"gguf", "decoded", write_decoded_gguf},
    Maker{"gguf", "parts", write_gguf_parts},
    Maker{"checkpoint", "int8", write_checkpoint},
    Maker{"llama2c", "float32", write_llama2c},
    Maker{"qsf", "f16", write_qsf},
};

TEST(Memory, OfAnyInputStaysSmall) {
  std::set<std::string_view> kinds;
  for (const Maker& maker : kMakers) {
    SCOPED_TRACE(maker.form);
    const Folder folder;
    const std::string in = maker.write(folder);
    const Ran ran = measured(
        {program("qsf-convert"), in, folder.path("out.qsf"), "--quiet", "--quant-type", "8bit", "--tokenizer", "none"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_GT(ran.peak_resident_bytes, 1u << 20);
    // The promise is twice the largest tensor (62 MiB here) and 64 MB more.
    EXPECT_LT(ran.peak_resident_bytes, 48u << 20);
    kinds.insert(maker.kind);
  }
  for (const convert::InputKind& kind : convert::kInputKinds) EXPECT_TRUE(kinds.contains(kind.name)) << kind.name;
}

// Sums, logits and the model itself, which is mapped: in memory they were 102 MB here.
TEST(Memory, OfCalibratingStaysSmall) {
  const Folder folder;
  write_text(folder.path("text.txt"), "Once upon a time there was a little fox who lived near a river.");
  const Ran ran = measured({program("qsf-convert"), kSource + "/models/stories", folder.path("out.qsf"), "--quiet",
                            "--quant-type", "q4_k", "--calibration", folder.path("text.txt"), "--own-tokens", "600"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_GT(ran.peak_resident_bytes, 1u << 20);
  EXPECT_LT(ran.peak_resident_bytes, 56u << 20);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 2u);  // the text and the model
}

}  // namespace
}  // namespace qsf::test
#endif
