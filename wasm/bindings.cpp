// The bindings for JavaScript: the class Session with the calls of boundary.def, and the structures of their arguments
// and results. The declarations in web/src/boundary.gen.ts are made from the same list.
#include <emscripten/bind.h>

#include "wasm/convert.h"
#include "wasm/instance.h"

namespace qsf::wasm {

/// The parts of an answer become an array.
template <>
struct Js<NewParts> {
  using type = emscripten::val;
  static type to(const NewParts& parts) {
    struct List {
      type array = type::array();
      std::size_t n = 0;
    } list;
    parts.read({&list, [](void* to, const chat::Part& part) {
                  List& all = *static_cast<List*>(to);
                  all.array.set(all.n++, part);
                }});
    return list.array;
  }
};

namespace {

/// The types of calls in boundary.def, in addition to those of its structures.
namespace calls {

using boundary::flag;
using boundary::text;
using boundary::u32;
using boundary::u64;
using none = void;
using status = Status;
using failure = Error;
using step = Step;
using end = End;
using request = std::optional<ReadRequest>;
using room = std::optional<std::span<std::uint8_t>>;
using bytes = Bytes;
using values = std::span<const float>;
using tokens = Result<std::span<const std::uint32_t>>;
using ids = std::span<const std::uint32_t>;
using piece = Result<Bytes>;
using saved = Result<Saved>;
using done = Result<bool>;
using stats = Stats;
using sequence_stats = SequenceStats;
using regions = std::span<const MemoryRegion>;
using kernels = std::span<const KernelCount>;
using logprobs = std::span<const TokenLogprob>;
using segments = Segments;
using parts = NewParts;
using kv_choice = std::optional<KvType>;
using pooling_choice = std::optional<Pooling>;
using grammar_kind = std::optional<GrammarKind>;
using flag_choice = std::optional<bool>;
using size_choice = std::optional<std::uint32_t>;
using time = templates::Time;
using open_options = OpenOptions;
using other = Instance&;
using sampler_options = SamplerOptions;
using prompt_options = Prompt;
using embedding_options = EmbedPrompt;

}  // namespace calls

template <class R, class Of, class... Args>
Of& object_of(Instance& instance, R (Of::*)(Args...)) {
  if constexpr (std::is_same_v<Of, Session>) {
    return instance.session();
  } else {
    return instance;
  }
}
template <class R, class Of, class... Args>
const Of& object_of(Instance& instance, R (Of::*)(Args...) const) {
  return object_of(instance, static_cast<R (Of::*)(Args...)>(nullptr));
}

template <class Type>
struct Call;

/// Calls a method of the instance or of its session, as the list declares it.
template <class R, class... Args>
struct Call<R(Args...)> {
  template <auto method>
  static Js<R>::type call(Instance& instance, Js<Args>::type... args) {
    auto& object = object_of(instance, method);
    if constexpr (std::is_void_v<R>) {
      (object.*method)(Js<Args>::from(args)...);
    } else {
      return Js<R>::to(R{(object.*method)(Js<Args>::from(args)...)});
    }
  }
};

void bind_options() {
  emscripten::value_object<OpenOptions> open("OpenOptions");
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) field<&OpenOptions::name>(open, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<SamplerOptions> sampler("SamplerOptions");
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) field<&SamplerOptions::name>(sampler, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<Prompt> prompt("PromptOptions");
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) field<&Prompt::name>(prompt, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<EmbedPrompt> embedding("EmbeddingOptions");
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) field<&EmbedPrompt::name>(embedding, #js);
#include "qsf/base/boundary.def"
}

void bind_records() {
  emscripten::value_object<Stats> stats("SessionStats");
#define QSF_STAT(type, name, js, meaning) field<&Stats::name>(stats, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<SequenceStats> sequence("SequenceStats");
#define QSF_SEQUENCE_STAT(type, name, js, meaning) field<&SequenceStats::name>(sequence, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<ReadRequest> request("ReadRequest");
#define QSF_READ_FIELD(type, name, js, meaning) field<&ReadRequest::name>(request, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<Segment> segment("Segment");
#define QSF_SEGMENT_FIELD(type, name, js, meaning) field<&Segment::name>(segment, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<MemoryRegion> region("RegionBytes");
#define QSF_REGION_FIELD(type, name, js, meaning) field<&MemoryRegion::name>(region, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<KernelCount> kernel("KernelCount");
#define QSF_KERNEL_FIELD(type, name, js, meaning) field<&KernelCount::name>(kernel, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<TokenLogprob> logprob("TokenLogprob");
#define QSF_LOGPROB_FIELD(type, name, js, meaning) field<&TokenLogprob::name>(logprob, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<templates::Time> time("LocalTime");
#define QSF_TIME_FIELD(type, name, js, meaning) field<&templates::Time::name>(time, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<chat::Part> part("AnswerPiece");
#define QSF_PART_FIELD(type, name, js, meaning) field<&chat::Part::name>(part, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<Saved> saved("SavedHeader");
#define QSF_SAVED_FIELD(type, name, js, meaning) field<&Saved::name>(saved, #js);
#include "qsf/base/boundary.def"
  emscripten::value_object<Error> failure("Failure");
#define QSF_FAILURE_FIELD(type, name, js, meaning) field<&Error::name>(failure, #js);
#include "qsf/base/boundary.def"
}

void bind_calls() {
  using namespace calls;
  emscripten::class_<Instance> session("Session");
  session.constructor<u32, flag>();
#define QSF_CALL(of, result, name, js, arguments, meaning) \
  session.function(#js, &Call<result arguments>::template call<&of::name>);
#include "qsf/base/boundary.def"
}

}  // namespace
}  // namespace qsf::wasm

EMSCRIPTEN_BINDINGS(qsf) {
  qsf::wasm::bind_options();
  qsf::wasm::bind_records();
  qsf::wasm::bind_calls();
}
