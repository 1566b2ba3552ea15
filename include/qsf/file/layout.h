// QSF version 1 as structures, whose bytes docs/reference/format.md specifies. reader.h reads them and writer.h writes
// them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qsf/formats/format.h"

namespace qsf {

inline constexpr std::uint32_t kHeaderSize = 128;
inline constexpr std::uint32_t kLayerEntrySize = 32;
inline constexpr std::uint32_t kTensorHeaderSize = 16;
inline constexpr std::uint32_t kSectionEntrySize = 24;
inline constexpr std::uint32_t kTensorEntrySize = 32;
inline constexpr std::uint32_t kSegmentEntrySize = 32;

inline constexpr std::uint32_t kMaxLayers = 1024;
inline constexpr std::uint32_t kMaxDim = 1u << 20;
inline constexpr std::uint32_t kMaxTaps = 8;  // of a convolution
inline constexpr std::uint32_t kMaxVocab = 1u << 22;
inline constexpr std::uint32_t kMaxSeqLen = 1u << 24;
inline constexpr std::uint32_t kMaxSegmentRaw = 16u << 20;
inline constexpr std::uint32_t kMaxExperts = 1024;  // of a layer
inline constexpr std::uint32_t kMaxStreams = 8;     // of a model
inline constexpr std::uint32_t kMaxSections = 64;

enum class Arch : std::uint32_t { gpt2 = 0, llama = 1, mistral = 2, phi = 3, custom = 4 };  // for display only
/// gelu: its tanh form; gelu_erf: with the error function; relu2: the square of relu;
/// xielu: Huang and Schlag 2024, with numbers of each layer.
enum class Activation : std::uint8_t { gelu = 0, silu = 1, relu = 2, gelu_erf = 3, relu2 = 4, xielu = 5 };
enum class Norm : std::uint8_t { layer_norm = 0, rms_norm = 1 };
enum class Position : std::uint8_t { learned = 0, rope = 1, alibi = 2 };
enum class Compression : std::uint8_t { none = 0, lz4 = 1, lz4hc = 2, zstd = 3 };
/// The most bytes of a ZSTD frame's window and of its blocks. A larger block needs more memory after the segment when
/// it is decompressed in place.
inline constexpr std::uint32_t kZstdWindowLog = 15, kZstdBlock = 1u << kZstdWindowLog;

/// Bytes 0-127 of a file.
struct Header {
  Arch arch = Arch::llama;                   // 12
  std::uint32_t n_layers = 0;                // 16
  std::uint32_t dim = 0;                     // 20
  std::uint32_t n_heads = 0;                 // 24
  std::uint32_t n_kv_heads = 0;              // 28  never 0 once read: a stored 0 means n_heads
  std::uint32_t vocab_size = 0;              // 32
  std::uint32_t max_seq_len = 0;             // 36
  std::uint32_t ffn_dim = 0;                 // 40
  std::uint32_t head_dim = 0;                // 44
  std::uint8_t quant = 0;                    // 48  FormatId or mixed
  Activation activation = Activation::silu;  // 49
  Norm norm = Norm::rms_norm;                // 50
  Position position = Position::rope;        // 51
  float rope_theta = 0;                      // 52
  std::uint64_t layer_index_offset = 0;      // 56
  std::uint64_t embedding_offset = 0;        // 64
  std::uint64_t final_offset = 0;            // 72
  std::uint32_t bos = 0, eos = 0, pad = 0;   // 80, 84, 88  0xffffffff: none
  std::uint32_t file_size_low = 0;           // 92  lower 32 bits of the file's size
  // 96: CRC-32 of bytes 0-95. Then the extensions:
  std::uint64_t directory_offset = 0;  // 100
  std::uint32_t n_sections = 0;        // 108
  std::uint32_t directory_crc = 0;     // 112
  std::uint32_t layer_index_crc = 0;   // 116
  std::uint32_t flags = 0;             // 120
  // 124: CRC-32 of bytes 100-123
};
inline constexpr std::uint32_t kNoToken = 0xffffffffu;
inline constexpr std::uint32_t kFlagTied = 1u << 0;          // the output head is the embedding
inline constexpr std::uint32_t kFlagFinalNormF32 = 1u << 1;  // the final norm is f32 (without it f16)
inline constexpr std::uint32_t kFlagAligned = 1u << 2;       // each segment's weights begin at a multiple of kAlignment
inline constexpr std::uint32_t kKnownFlags = kFlagTied | kFlagFinalNormF32 | kFlagAligned;

struct LayerEntry {
  std::uint64_t offset = 0;
  std::uint32_t stored_size = 0;
  std::uint32_t raw_size = 0;
  std::uint8_t quant = 0;
  Compression compression = Compression::none;
  std::uint16_t n_tensors = 0;
  std::uint32_t crc = 0;  // of the stored bytes
  float importance = 0;
};

/// A section is identified by its tag; readers skip unknown tags, except those with kSectionNeeded.
struct SectionEntry {
  std::uint32_t tag = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t crc = 0;
};
constexpr std::uint32_t tag(const char (&name)[5]) {
  return static_cast<std::uint32_t>(static_cast<unsigned char>(name[0])) |
         static_cast<std::uint32_t>(static_cast<unsigned char>(name[1])) << 8 |
         static_cast<std::uint32_t>(static_cast<unsigned char>(name[2])) << 16 |
         static_cast<std::uint32_t>(static_cast<unsigned char>(name[3])) << 24;
}
inline constexpr std::uint32_t kTagTensors = tag("TENS");    // the tensor table, needed
inline constexpr std::uint32_t kTagSegments = tag("SEGS");   // the segment table, needed
inline constexpr std::uint32_t kTagMeta = tag("META");       // typed keys and values, needed
inline constexpr std::uint32_t kTagTokenizer = tag("TOKN");  // the tokenizer, optional
inline constexpr std::uint32_t kTagRope = tag("ROPE");    // f32 [head_dim / 2] divisors of RoPE's frequencies, optional
inline constexpr std::uint32_t kTagLayers = tag("LAYR");  // the kinds of layers, optional
inline constexpr std::array kKnownTags{kTagTensors, kTagSegments, kTagMeta, kTagTokenizer, kTagRope, kTagLayers};
inline constexpr std::uint32_t kSectionNeeded = 1;  // flag: a reader must refuse the file if it does not know the tag

/// A tag as text. Bytes that are not printable are '?'.
struct TagName {
  explicit constexpr TagName(std::uint32_t tag) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t c = tag >> (8 * i) & 0xff;
      text[i] = c > ' ' && c < 0x7f ? static_cast<char>(c) : '?';
    }
  }
  char text[5] = {};
};

inline constexpr std::size_t kMaxEndTokens = 8;  // of a model

/// Keys of the META section that the engine or hosts use; other keys are for display only.
inline constexpr std::string_view kMetaNormEpsilon = "norm.epsilon";  // f32, needed
inline constexpr std::string_view kMetaWindow = "attention.window";   // u32, sliding window; absent or 0: none
inline constexpr std::string_view kMetaEndTokens = "tokens.eos";      // text, ids of tokens that end a text: "2, 107"
inline constexpr std::string_view kMetaArchitecture = "general.architecture";  // text, for people
inline constexpr std::string_view kMetaName = "general.name";                  // text, for people
inline constexpr std::string_view kMetaChatTemplate = "chat.template";  // text, Jinja; ".NAME" is added to named ones
inline constexpr std::string_view kMetaChatTokens = "chat.";  // such as "chat.bos_token": text, as in the template
inline constexpr std::uint32_t kMaxMetaText = 1u << 20;       // bytes of a text

/// The purpose of a tensor, by its number in the file; roles.h has all other properties. 0-13 are version 1's tensor
/// types.
enum class Role : std::uint8_t {
  attn_q = 0,
  attn_k = 1,
  attn_v = 2,
  attn_o = 3,
  ffn_gate = 4,
  ffn_up = 5,
  ffn_down = 6,
  attn_norm = 7,
  ffn_norm = 8,
  attn_q_bias = 9,
  attn_k_bias = 10,
  attn_v_bias = 11,
  attn_o_bias = 12,
  ffn_bias = 13,
  attn_q_norm = 14,
  attn_k_norm = 15,
  token_embd = 16,
  final_norm = 17,
  head = 18,
  attn_post_norm = 32,
  ffn_post_norm = 33,
  attn_norm_bias = 34,
  ffn_norm_bias = 35,
  final_norm_bias = 36,
  ffn_gate_bias = 37,
  ffn_up_bias = 38,
  pos_embd = 39,
  head_bias = 40,
  attn_q_norm_all = 41,
  attn_k_norm_all = 42,
  attn_sub_norm = 43,
  ffn_sub_norm = 44,
  attn_sinks = 45,
  router = 46,
  router_bias = 47,
  router_choice_bias = 48,
  expert_gate = 49,
  expert_up = 50,
  expert_down = 51,
  expert_gate_bias = 52,
  expert_up_bias = 53,
  expert_down_bias = 54,
  shared_gate = 55,
  shared_up = 56,
  shared_down = 57,
  shared_router = 58,
  conv_b = 60,
  conv_c = 61,
  conv_x = 62,
  conv_out = 63,
  conv_weight = 64,
  conv_bias = 65,
  state_q = 66,
  state_k = 67,
  state_v = 68,
  state_z = 69,
  state_a = 70,
  state_b = 71,
  state_decay = 72,
  state_dt_bias = 73,
  state_skip = 74,
  state_norm = 75,
  state_norm_all = 76,
  state_out = 77,
  attn_gate = 78,
  stream_norm = 80,
  stream_norm_bias = 81,
  attn_post_norm_bias = 82,
  ffn_post_norm_bias = 83,
  stream_bias = 84,
  layer_embd = 85,
  layer_inputs_proj = 86,
  layer_inputs_norm = 87,
  layer_input_gate = 88,
  layer_input_proj = 89,
  layer_input_post_norm = 90,
  layer_scale = 91,
  dense = 92,
  dense_bias = 93,
  score_norm = 94,
  score = 95,
  score_bias = 96,
  second_bias = 97,
  router_norm = 100,
  expert_norm = 101,
  dense_post_norm = 102,
  expert_post_norm = 103,
  router_expert_scale = 104,
  latent_q_down = 110,
  latent_q_norm = 111,
  latent_q = 112,
  latent_q_rope = 113,
  latent_kv = 114,
  latent_kv_norm = 115,
  latent_k_rope = 116,
  latent_k_up = 117,
  latent_v_up = 118,
  latent_out = 119,
  xielu_p = 120,
  xielu_n = 121,
  xielu_beta = 122,
  xielu_eps = 123,
  state_in_rank = 124,
  state_in_k = 125,
  state_in_q = 126,
  state_rank_norm = 127,
  state_k_norm = 128,
  state_q_norm = 129,
  state_step = 130,
  state_decays = 131,
  distance_bias = 140,
  streams_in = 150,
  streams_out = 151,
  stream_router_norm = 152,
  stream_router = 153,
  stream_predict = 154,
  stream_correct = 155,
  stream_scale = 156,
  laurel_left = 157,
  laurel_right = 158,
  laurel_norm = 159,
  guess_token_norm = 160,
  guess_state_norm = 161,
  guess_join = 162,
  guess_norm = 163,
};

/// A tensor of a stage. `stage` is the stage's index in file order: 0 the embedding, 1 .. n_layers the layers,
/// n_layers + 1 the head. The decompressed bytes of a stage are a 16-byte header and the data for each tensor; those of
/// the last stage begin with the final norm without a header, and one flag byte.
struct TensorEntry {
  std::uint32_t stage = 0;
  Role role = Role::attn_q;
  FormatId format = FormatId::f32;
  Layout layout = Layout::rows;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::uint64_t raw_offset = 0;  // of the data, after its header, in the stage's decompressed bytes
  std::uint32_t first_segment = 0;
  std::uint32_t n_segments = 0;
};

/// The unit of reading: the vectors of one stage, or a run of whole strips of one matrix. The first segment of a matrix
/// begins with its 16-byte header.
struct SegmentEntry {
  std::uint64_t offset = 0;  // in the file
  std::uint32_t stored_size = 0;
  std::uint32_t raw_size = 0;
  std::uint32_t raw_begin = 0;  // in the stage's decompressed bytes
  std::uint32_t crc = 0;        // of the stored bytes
  std::uint32_t stage = 0;
  Compression compression = Compression::none;
  std::uint8_t flags = 0;
};
inline constexpr std::uint8_t kSegmentVectors = 1;  // vectors, which are always resident

}  // namespace qsf
