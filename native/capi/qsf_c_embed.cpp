// Embeddings in the C API.
#include <algorithm>
#include <cstdlib>

#include "native/capi/qsf_c.h"

namespace {

using namespace qsf;
using namespace qsf::c_api;

/// Returns [rows, dim] that the caller releases; nullptr, with an error, on failure.
float* embed(QSFEngine& engine, const EmbedPrompt& prompt) {
  Session& session = engine.host->session();
  engine.rest.clear();
  if (const Status s = session.embed(prompt); !s) {
    fail(s.error());
    return nullptr;
  }
  Started started(session);
  std::vector<float> all;
  for (;;) {
    const Result<Step> step = engine.host->next();
    if (!step) {
      fail(step.error());
      return nullptr;
    }
    if (*step == Step::done) break;
    const std::span<const float> rows = session.embedding();
    if (*step == Step::embedding) all.insert(all.end(), rows.begin(), rows.end());
  }
  started.ended();
  auto* out = static_cast<float*>(std::malloc(sizeof(float) * all.size()));
  if (out == nullptr) {
    fail(make_error(ErrorCode::out_of_memory, "no memory for an embedding of {} values", all.size()));
    return nullptr;
  }
  std::ranges::copy(all, out);
  return out;
}

float* embed_text(QSFEngine* engine, const char* text) {
  if (engine == nullptr || text == nullptr) {
    fail(wrong("an engine and a text are needed"));
    return nullptr;
  }
  if (!is_idle(*engine)) return nullptr;
  const Run run(*engine);
  EmbedPrompt prompt;
  prompt.text = text;
  return embed(*engine, prompt);
}

float* embed_tokens(QSFEngine* engine, const int* tokens, int num_tokens, const char* pooling, int normalize) {
  if (engine == nullptr) {
    fail(wrong("an engine is needed"));
    return nullptr;
  }
  if (!is_idle(*engine)) return nullptr;
  const Run run(*engine);
  std::vector<std::uint32_t> ids;
  if (!read_tokens(*engine, tokens, num_tokens, ids)) return nullptr;
  EmbedPrompt prompt;
  prompt.tokens = ids;
  if (pooling != nullptr) {
    const auto name = std::ranges::find(kPoolingNames, std::string_view(pooling));
    if (name == kPoolingNames.end()) {
      fail(make_error(ErrorCode::bad_argument, "there is no pooling \"{:.40}\"; it can be none, mean, first or last",
                      pooling));
      return nullptr;
    }
    prompt.pooling = static_cast<Pooling>(name - kPoolingNames.begin());
  }
  if (normalize >= 0) prompt.normalize = normalize != 0;
  return embed(*engine, prompt);
}

}  // namespace

int qsf_embed_size(const QSFEngine* engine) {
  return engine == nullptr ? 0 : static_cast<int>(engine->host->session().stats().dim);
}

float* qsf_embed(QSFEngine* engine, const char* text) {
  return call<float*>(nullptr, [&] { return embed_text(engine, text); });
}

float* qsf_embed_tokens(QSFEngine* engine, const int* tokens, int num_tokens, const char* pooling, int normalize) {
  return call<float*>(nullptr, [&] { return embed_tokens(engine, tokens, num_tokens, pooling, normalize); });
}
