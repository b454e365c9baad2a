#!/usr/bin/env bash
# From a bare Debian 12 to the whole job in one go: installs, builds, generates text at three budgets,
# trains a small controller, and measures controllers against fixed budgets. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")"

model=models/default
controller=$model/controllers/2l-enforced
out=out/quickstart
sol=build/sol
prompt="The old house stood at the end of the village, and"

say() { printf '\n== %s\n' "$*"; }
# Shows a command as one would type it, then runs it.
run() {
  printf '$'
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=,+-]* | "") printf " '%s'" "$word" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
  "$@"
}

say "1 of 5: what is needed (Debian packages, then a Release build in build/)"
scripts/setup.sh
scripts/build.sh -DSOL_TESTS=OFF

if [ ! -f "$controller/controller.json" ]; then
  echo "quickstart: the shipped controller is missing: $controller has no controller.json." >&2
  echo "quickstart: check out the repository in full, or train one:" >&2
  echo "quickstart:   $sol train configs/default-2l-enforced.yaml --data data/novels-train.txt.zst -o $controller" >&2
  exit 1
fi
mkdir -p "$out"

say "2 of 5: the same prompt, dense and at three budgets (net keep-rates 0.9, 0.7 and 0.5)"
run "$sol" inspect -m "$model"
run "$sol" generate -n 64 --seed 1 --temperature 0.8 --top-p 0.95 "$prompt"
for budget in 0.9 0.7 0.5; do
  run "$sol" generate -c "$controller" --budget "$budget" -n 64 --seed 1 --temperature 0.8 --top-p 0.95 "$prompt"
done

say "3 of 5: a fresh controller, trained for two minutes (a real one takes longer)"
run "$sol" train configs/default-demo.yaml --data data/novels-train.txt.zst -o "$out/controller" \
  --minutes 2 --overwrite

say "4 of 5: the fresh controller against fixed budgets, on text it has not seen"
run "$sol" sweep -c "$out/controller" --data data/novels-valid.txt.zst --context 256 --blocks 48 \
  -o "$out/fresh"

say "5 of 5: the shipped controller against fixed budgets, on wikitext-2 test"
run "$sol" sweep -c "$controller" --data data/wikitext-2/wiki.test.raw.zst --format wikitext --blocks 48 \
  -o "$out/shipped"

say "Done"
cat <<END
program              $sol            (see: $sol --help)
fresh controller     $out/controller
its report           $out/fresh/report.html
shipped controller   $controller
its report           $out/shipped/report.html   <- open this one first

With a model of your own, any Llama in Hugging Face's format (config.json, *.safetensors, tokenizer.json):
  $sol inspect -m DIR
  $sol generate -m DIR "Once upon a time"
  $sol probe -m DIR --data TEXT.txt                    how much each axis hurts on it
  $sol train configs/2l.yaml -m DIR --data TEXT.txt -o my-controller
  $sol sweep -m DIR -c my-controller --data OTHER.txt --store-frontier -o my-report
  $sol generate -m DIR -c my-controller --budget 0.6 "Once upon a time"
END
