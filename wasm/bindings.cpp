// The names that JavaScript sees.
#include <emscripten/bind.h>

#include "wasm/instance.h"

EMSCRIPTEN_BINDINGS(qsf) {
  using namespace qsf::wasm;
  using emscripten::class_;
  using emscripten::value_object;

  value_object<Open> open("Open");
  open.field("budget", &Open::budget).field("fileSize", &Open::file_size).field("kv", &Open::kv);
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) open.field(#js, &Open::name);
#include "qsf/base/boundary.def"

  value_object<Read>("Read")
      .field("offset", &Read::offset)
      .field("size", &Read::size)
      .field("ticket", &Read::ticket)
      .field("into", &Read::into)
      .field("crc", &Read::crc)
      .field("hasCrc", &Read::has_crc);

  value_object<Text>("Text").field("at", &Text::at).field("size", &Text::size);

  value_object<Start> start("Start");
  start.field("at", &Start::at)
      .field("textSize", &Start::text_size)
      .field("nTokens", &Start::n_tokens)
      .field("stops", &Start::stops)
      .field("nStops", &Start::n_stops);
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) start.field(#js, &Start::name);
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) start.field(#js, &Start::name);
#include "qsf/base/boundary.def"

  value_object<Embed> embed("Embed");
  embed.field("at", &Embed::at)
      .field("textSize", &Embed::text_size)
      .field("nTokens", &Embed::n_tokens)
      .field("pooling", &Embed::pooling)
      .field("normalize", &Embed::normalize);
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) embed.field(#js, &Embed::name);
#include "qsf/base/boundary.def"

  class_<Instance>("Instance")
      .constructor<std::uint32_t>()
      .function("open", &Instance::open)
      .function("close", &Instance::close)
      .function("step", &Instance::step)
      .function("nextRequest", &Instance::next_request)
      .function("crc32", &Instance::crc32)
      .function("complete", &Instance::complete)
      .function("fail", &Instance::fail)
      .function("stage", &Instance::stage)
      .function("start", &Instance::start)
      .function("embed", &Instance::embed)
      .function("embedding", &Instance::embedding)
      .function("stop", &Instance::stop)
      .function("rewind", &Instance::rewind)
      .function("preload", &Instance::preload)
      .function("sequence", &Instance::sequence)
      .function("token", &Instance::token)
      .function("piece", &Instance::piece)
      .function("end", &Instance::end)
      .function("errorCode", &Instance::error_code)
      .function("sentence", &Instance::sentence)
      .function("modelHash", &Instance::model_hash)
      .function("logitsHash", &Instance::logits_hash)
      .function("tokenize", &Instance::tokenize)
      .function("detokenize", &Instance::detokenize)
      .function("stats", &Instance::stats)
      .function("sequenceStats", &Instance::sequence_stats)
      .function("memoryMap", &Instance::memory_map)
      .function("kernelCounts", &Instance::kernel_counts)
      .function("segments", &Instance::segments);
}
