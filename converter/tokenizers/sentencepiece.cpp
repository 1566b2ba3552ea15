// tokenizer.model: the fields of SentencePiece's ModelProto that BPE and unigram need, in protobuf's wire format
// (https://protobuf.dev/programming-guides/encoding, sentencepiece_model.proto).
#include <cmath>

#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

Error damaged(const char* what) { return make_error(ErrorCode::bad_tokenizer, "tokenizer.model: {}", what); }

struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;           // a varint, or the bits of a fixed number
  std::span<const std::byte> bytes;  // length-delimited
};

/// The fields of one message. bad() is true after damage.
class Message {
 public:
  explicit Message(std::span<const std::byte> bytes) : reader_(bytes) {}

  bool next(Field& out) {
    if (bad_ || reader_.left() == 0) return false;
    const std::uint64_t key = varint();
    out = {static_cast<std::uint32_t>(key >> 3), 0, {}};
    switch (key & 7) {
      case 0:
        out.value = varint();
        break;
      case 1:
        out.value = reader_.read<std::uint64_t>();
        break;
      case 2:
        out.bytes = reader_.take(varint());
        break;
      case 5:
        out.value = reader_.read<std::uint32_t>();
        break;
      default:
        bad_ = true;
    }
    bad_ = bad_ || reader_.bad() || (key >> 3) == 0 || (key >> 3) > 0x1fffffff;
    return !bad_;
  }
  bool bad() const { return bad_; }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = reader_.read<std::uint8_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad_ = true;
    return 0;
  }

  ByteReader reader_;
  bool bad_ = false;
};

// Field numbers of sentencepiece_model.proto.
constexpr std::uint32_t kPieces = 1, kTrainer = 2, kNormalizer = 3;
constexpr std::uint32_t kPieceText = 1, kPieceScore = 2, kPieceType = 3;
constexpr std::uint32_t kModelType = 3;
constexpr std::uint32_t kCharacterMap = 2, kAddDummyPrefix = 3, kRemoveSpaces = 4;
constexpr std::uint64_t kTypeUnigram = 1, kTypeBpe = 2;

Status read_piece(std::span<const std::byte> bytes, TokenizerSource& out) {
  TokenizerSource::Token token;
  std::uint64_t type = 1;
  Message piece(bytes);
  for (Field field; piece.next(field);) {
    if (field.number == kPieceText) {
      const std::string_view text(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
      QSF_TRY(check_token_text(out.tokens.size(), text));
      token.text = text;
    } else if (field.number == kPieceScore) {
      token.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
    } else if (field.number == kPieceType) {
      type = field.value;
    }
  }
  if (piece.bad()) return damaged("a piece is cut short");
  if (type < 1 || type > 6 || !std::isfinite(token.score)) {
    return make_error(ErrorCode::bad_tokenizer, "tokenizer.model: piece {} has the type {} and the score {}",
                      out.tokens.size(), type, token.score);
  }
  token.type = static_cast<TokenType>(type);  // the numbers are the same
  if (out.tokens.size() == kMaxVocab) return damaged("there are too many pieces");
  out.tokens.push_back(std::move(token));
  return {};
}

}  // namespace

Result<TokenizerSource> read_sentencepiece(std::span<const std::byte> bytes) {
  TokenizerSource out;
  out.kind = TokenizerKind::spm_bpe;
  out.add_space_prefix = true;  // the proto's default
  out.add_bos = true;           // the file does not state it; the models that come with one expect it
  std::uint64_t model_type = kTypeUnigram;
  bool removes_spaces = true;  // the proto's default
  std::string map;
  Message model(bytes);
  for (Field field; model.next(field);) {
    if (field.number == kPieces) {
      QSF_TRY(read_piece(field.bytes, out));
    } else if (field.number == kTrainer || field.number == kNormalizer) {
      Message spec(field.bytes);
      for (Field inner; spec.next(inner);) {
        if (field.number == kTrainer && inner.number == kModelType) model_type = inner.value;
        if (field.number != kNormalizer) continue;
        if (inner.number == kAddDummyPrefix) out.add_space_prefix = inner.value != 0;
        if (inner.number == kCharacterMap)
          map.assign(reinterpret_cast<const char*>(inner.bytes.data()), inner.bytes.size());
        if (inner.number == kRemoveSpaces) removes_spaces = inner.value != 0;
      }
      if (spec.bad()) return damaged("the specification is cut short");
    }
  }
  if (model.bad()) return damaged("it is cut short or no SentencePiece model");
  if (out.tokens.empty()) return damaged("it holds no pieces");
  if (model_type != kTypeBpe && model_type != kTypeUnigram) {
    return make_error(ErrorCode::unsupported,
                      "tokenizer.model: the model type {} is not supported, only BPE and unigram are",
                      model_type == 3 ? "word" : "char");
  }
  if (model_type == kTypeUnigram) out.kind = TokenizerKind::unigram;
  out.trim_spaces = removes_spaces;
  if (!map.empty()) out.normalizer.push_back({NormalizerOp::char_map, {}, std::move(map)});
  return out;
}

}  // namespace qsf::convert
