#!/usr/bin/env bash
# CPU per forwarded call of the router and of a plain forwarder, side by side, in rounds:
#
#   tests/bench/forward.sh BIN [ROUNDS] [CALLERS]
#
# BIN holds nexus and the programs toolserver, floor and loadgen, which are not part of this repository. Prints
# microseconds of user and system time per call, the median over the rounds, and the ratio to the floor.
set -euo pipefail
bin=$1 rounds=${2:-5} callers=${3:-32}
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

start() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 &
	pids+=($!)
	printf -v "pid_$name" %d $!
}
cat >"$work/config.yaml" <<YAML
listen: 127.0.0.1:19203
mcpServers: {srv: {url: "http://127.0.0.1:19201/mcp"}}
auth: {api_keys: [{name: bench, sha256: $(printf bench-key | sha256sum | cut -d' ' -f1)}]}
log: {level: error}
YAML
start tools "$bin/toolserver" -engine raw -tools 20 -port 19201
start floor "$bin/floor" -addr 127.0.0.1:19202 -servers srv=http://127.0.0.1:19201/mcp
start nexus "$bin/nexus" serve --config "$work/config.yaml"
sleep 1

cpu() { awk '{print $14 + $15}' "/proc/$1/stat"; } # clock ticks

measure() { # PID LOADGEN-ARGUMENTS... -> microseconds per call
	local pid=$1 before calls
	shift
	before=$(cpu "$pid")
	calls=$("$bin/loadgen" -c "$callers" -d 2s -header 'Authorization: Bearer bench-key' "$@" | grep -o '"ok":[0-9]*' | cut -d: -f2)
	awk -v t=$(($(cpu "$pid") - before)) -v n="$calls" -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.1f\n", t / hz * 1e6 / n}'
}
for ((i = 0; i < rounds; i++)); do
	measure "$pid_floor" -url http://127.0.0.1:19202/mcp -tool srv__echo >>"$work/floor"
	measure "$pid_nexus" -url http://127.0.0.1:19203/proxy/mcp -tool srv__echo >>"$work/proxy"
	measure "$pid_nexus" -url http://127.0.0.1:19203/mcp -tool run -args '{"tool":"srv__echo","parameters":{"text":"hello"}}' >>"$work/run"
done
median() { sort -n "$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
floor=$(median "$work/floor")
printf '%-12s %10s %8s\n' path 'us/call' 'x floor'
for path in floor proxy run; do
	awk -v p="$path" -v v="$(median "$work/$path")" -v f="$floor" 'BEGIN {printf "%-12s %10.1f %8.2f\n", p, v, v / f}'
done
