#!/bin/sh
# cached-compiler.sh COMPILER ARGS...: compiles through ccache. A source that is not cached is hashed by the headers that
# the compiler names while it compiles, because a run of the preprocessor before would cost as much as a tenth of the
# compilation, and a third with Emscripten. Groups of sources name them by paths of the checkout, so they are hashed as
# preprocessed, which other checkouts share.
case "$*" in
  */Unity/unity_*) ;;
  *) export CCACHE_DEPEND=1 ;;
esac
exec ccache "$@"
