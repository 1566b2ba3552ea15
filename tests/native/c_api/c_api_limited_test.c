/* c_api_limited_test MODEL: a host of libqsf in whatever memory it has. Exit code 0 if every call came back and said
 * what was wrong: a library ends no program. */
#include <stdio.h>
#include <string.h>

#include "qsf.h"

enum { kOutOfMemory = 25 };

static int failed(const char* what) {
  const int code = qsf_last_error_code();
  if (code == 0) return 0;
  printf("%s: error %d: %s\n", what, code, qsf_last_error());
  return code == kOutOfMemory && strlen(qsf_last_error()) > 15 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int wrong = 0;
  QSFConfig* config = qsf_config_default();
  if (config == NULL) return 0;
  qsf_config_set_ram_budget(config, 32);
  qsf_config_set_threads(config, 3);
  for (int round = 0; round < 2; ++round) {
    QSFEngine* engine = qsf_load(argv[1], config);
    wrong += failed("load");
    if (engine == NULL) continue;
    int n = 0;
    int* ids = qsf_tokenize(engine, "Once upon a time", &n);
    wrong += failed("tokenize");
    qsf_release(ids);
    qsf_generate(engine, "Once upon a time", 4, 0.0f, 1.0f, NULL, NULL);
    wrong += failed("generate");
    printf("generated\n");
    qsf_free(engine);
  }
  qsf_config_free(config);
  return wrong == 0 ? 0 : 1;
}
