// Embeddings and scores in the C API.
#include <algorithm>
#include <cstdlib>

#include "native/capi/qsf_c.h"
#include "native/host/rerank.h"

namespace {

using namespace qsf;
using namespace qsf::c_api;

/// Returns a copy that the caller releases; nullptr, with an error, on failure.
float* given(std::span<const float> values) {
  auto* out = static_cast<float*>(std::malloc(sizeof(float) * values.size()));
  if (out == nullptr) {
    fail(make_error(ErrorCode::out_of_memory, "no memory for {} values", values.size()));
    return nullptr;
  }
  std::ranges::copy(values, out);
  return out;
}

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
  return given(all);
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

float* rerank_all(QSFEngine* engine, const char* query, const char* const* documents, int n) {
  if (engine == nullptr || query == nullptr || documents == nullptr || n < 1 ||
      std::any_of(documents, documents + n, [](const char* text) { return text == nullptr; })) {
    fail(wrong("an engine, a query and documents are needed"));
    return nullptr;
  }
  if (!is_idle(*engine)) return nullptr;
  const Run run(*engine);
  engine->rest.clear();
  std::vector<float> scores;
  for (const char* const text : std::span(documents, static_cast<std::size_t>(n))) {
    const Result<float> score = rerank(*engine->host, query, text);
    if (!score) {
      fail(score.error());
      return nullptr;
    }
    scores.push_back(*score);
  }
  return given(scores);
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

float* qsf_rerank(QSFEngine* engine, const char* query, const char* const* documents, int num_documents) {
  return call<float*>(nullptr, [&] { return rerank_all(engine, query, documents, num_documents); });
}
