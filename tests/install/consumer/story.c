/* story MODEL: a few words by the C interface. */
#include <qsf.h>
#include <stdio.h>

static void show(int token_id, const char* text, void* user_data) {
  (void)token_id;
  (void)user_data;
  fputs(text, stdout);
}

int main(int argc, char** argv) {
  QSFEngine* engine = argc == 2 ? qsf_load(argv[1], NULL) : NULL;
  if (engine != NULL) {
    qsf_generate(engine, "<|endoftext|>Once upon a time", 4, 0.0f, 1.0f, show, NULL);
  }
  const int code = qsf_last_error_code();
  if (engine == NULL || code != 0) fprintf(stderr, "%d: %s\n", code, qsf_last_error());
  qsf_free(engine);
  return engine == NULL || code != 0;
}
