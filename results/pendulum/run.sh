#!/usr/bin/env bash
# Trains the pendulum with seeds 0..4, one core each, and sums up. Usage: results/pendulum/run.sh [WORK_FOLDER]
# A run that was interrupted is resumed; a run that is complete is left as it is.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=${1:-$top/runs/evidence-pendulum}
sbsrl="$top/.venv/bin/sbsrl"
cores=$(nproc)
mkdir -p "$work"

run() { # seed core
    local folder="$work/s$1"
    if [ -e "$folder/config.json" ]; then
        taskset -c "$2" "$sbsrl" resume "$folder"
    else
        taskset -c "$2" "$sbsrl" train pendulum --seed "$1" --out "$folder"
    fi >"$work/s$1.log" 2>&1
}

for core in $(seq 0 $((cores - 1))); do
    (for seed in $(seq "$core" "$cores" 4); do run "$seed" "$core"; done) &
done
wait
for seed in 0 1 2 3 4; do
    mkdir -p "$here/s$seed"
    cp "$work/s$seed"/{config.json,episodes.jsonl,certificate.json} "$here/s$seed/"
done
rm -rf "$here/s0/trajectories"
cp -r "$work/s0/trajectories" "$here/s0/" # what the benchmarks plan with
cp "$work/s0/learning.png" "$top/docs/pendulum.png"
"$top/.venv/bin/python" "$here/summarise.py" >"$here/README.md"
