#include "native/host/rerank.h"

#include "qsf/base/try.h"
#include "qsf/chat/rerank.h"

namespace qsf {

Result<float> rerank(Host& host, std::string_view query, std::string_view document) {
  Session& session = host.session();
  QSF_TRY(chat::rerank(session, query, document, session.text_memory()));
  float score = 0;
  while (true) {
    const Result<Step> step = host.next();
    if (!step) {
      session.stop();
      return step.error();
    }
    if (*step == Step::embedding) score = session.embedding().front();
    if (*step == Step::done) return score;
  }
}

}  // namespace qsf
