#!/bin/bash
# What docs/performance.md tells of a machine, one after the other: a quarter of an hour on two cores of which nothing
# else may run.
#
#   bench/measure.sh OUT [NAME...]     all of them, or those named; BUILD is build/ unless set, with -DSOL_BENCH=ON
#
# OUT/NAME.txt holds when, with what build, a command and what it printed, OUT/NAME.csv its rows where it writes them.
set -eu -o pipefail
out=$(realpath -m "${1:?usage: bench/measure.sh OUT [NAME...]}")
shift
root=$(dirname "$(realpath "$0")")/..
build=$(realpath "${BUILD:-$root/build}")
cd "$root"
wanted=" $* "
sol=$build/sol
model=models/default
valid="--data data/wikitext-2/wiki.valid.raw.zst --format wikitext"
test="--data data/wikitext-2/wiki.test.raw.zst --format wikitext"
measured=0
mkdir -p "$out"

# measure NAME COMMAND...
measure() {
  local name=$1
  shift
  if [[ $wanted != "  " && $wanted != *" $name "* ]]; then return; fi
  echo "$name: $*" >&2
  measured=$((measured + 1))
  { date -u +%F; "$sol" --version; echo "\$ $*"; "$@" 2>&1; } > "$out/$name.txt"
}

# decode NAME OPTION...: random weights in the shape of Llama-3.2-1B
decode() {
  measure "$1" "$sol" bench --shape llama-3.2-1b --csv "$out/$1.csv" "${@:2}"
}

measure machine lscpu

rho=k100-s050-q16,k100-s040-q16
decode bf16 --prefill 128 --context 0 --action $rho --repeats 7
decode bf16-prune-down --prefill 128 --context 0 --action $rho --repeats 7 --prune-down
decode int8 --prefill 128 --context 0 --action $rho --repeats 7 --weights int8
decode int8-activations --prefill 128,1024 --context 0 --action $rho --repeats 7 --weights int8 --int8-activations
decode int4 --prefill 128 --context 0 --action $rho --repeats 7 --weights int4
decode context --policy --prefill 512,1024,4096 --context 0,1024,4096,16384 --action k050-s100-q16,k020-s100-q16 --repeats 5 --tokens 4
decode batch --prefill 128 --context 64 --batch 1,2,4,8,16 --action k100-s050-q16 --repeats 5
decode batch-int8 --prefill 128 --context 64 --batch 1,2,4,8,16 --action k100-s050-q16 --repeats 5 --weights int8
decode threads --prefill 128 --context 0 --with-threads 1,2 --repeats 5

measure attention "$build"/bin/attention_bench --contexts 4096,16384 --repeats 15
measure forks "$build"/bin/forks_bench --precision bf16
measure train-bf16 "$build"/bin/train_batch --batches 5 --precision bf16
measure train-f32 "$build"/bin/train_batch --batches 3 --precision f32

measure default-batch "$sol" bench --cached --prefill 1024 --context 64 --batch 1,2,4,8,16 --repeats 5
measure quality-valid "$build"/bin/weight_quality $valid --blocks 24
measure quality-test "$build"/bin/weight_quality $test --blocks 64
for action in k100-s100-q16 k100-s060-q16 k100-s050-q16 k100-s040-q16 k100-s030-q16; do
  measure prune-$action "$sol" eval $test --blocks 112 -p $action
  measure prune-down-$action "$sol" eval $test --blocks 112 -p $action --prune-down
done
measure time "$sol" sweep -c $model/controllers/2l-harsh $test --blocks 112 --timed \
  --keep 0.05,0.1,0.2,0.3,0.5,0.7,0.9 --prune 0.4,0.6,0.8,1 --bits 16 -o "$out/time"
if [[ $measured == 0 ]]; then
  echo "measure.sh: nothing is named$wanted" >&2
  exit 2
fi
