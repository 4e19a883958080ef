#!/bin/bash -eu
# Builds every target of fuzz/ with its corpus.
cd "$SRC/redlatch"
cargo fuzz build --fuzz-dir fuzz --release
for source in fuzz/targets/*.rs; do
  name=$(basename "$source" .rs)
  cp "fuzz/target/x86_64-unknown-linux-gnu/release/$name" "$OUT/"
  zip --quiet --junk-paths "$OUT/${name}_seed_corpus.zip" "fuzz/corpus/$name"/*
done
