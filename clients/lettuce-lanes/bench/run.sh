#!/usr/bin/env bash
# Measures the README's tables. Writes JMH's JSON files, the table, and the writes per command.
#
#   bench/run.sh --quick [DIR]   the README's main rows, in less than 12 minutes on 2 cores
#   bench/run.sh --smoke [DIR]   a few seconds; shows that the script works, its results mean nothing
#   bench/run.sh [DIR]           every row, 50, 100 and 200 threads, 0, 1 and 12 ms, both servers; takes hours
#
# Needs redis-server. BRISK_SERVER_BIN names Brisk's program; without it, only Redis is measured.
# If brisk-benchmark is in the same directory, it is the delay proxy: it adds 0.6 ms to a round trip, DelayProxy 1 to 4.
# Build first: mvn -B -q package -DskipTests. The machine must be quiet.
set -euo pipefail
cd "$(dirname "$0")"

kind=full
case "${1:-}" in
    --quick | --smoke)
        kind=${1#--}
        shift
        ;;
esac
out="${1:-target/results}"
mkdir -p "$out"
rm -f "$out"/*.json "$out"/writes.txt

[ -d target/libraries ] || { echo "build first: mvn -B -q package -DskipTests" >&2; exit 1; }
java=(java -cp "target/classes:target/libraries/*")

pids=()
end() {
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
}
trap end EXIT

free_port() {
    # The kernel selects a port, which is free again when the listener is closed.
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

await_port() {
    for _ in $(seq 100); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
            return 0
        fi
        sleep 0.1
    done
    echo "nothing listens on port $1" >&2
    exit 1
}

proxy_program=${BRISK_SERVER_BIN:+$(dirname "$BRISK_SERVER_BIN")/brisk-benchmark}
[ -x "$proxy_program" ] || proxy_program=
echo "The delay proxy: ${proxy_program:-DelayProxy}"

# delay_proxy PORT TARGET RTT_MS
delay_proxy() {
    if [ -n "$proxy_program" ]; then
        exec "$proxy_program" delay-proxy --listen "127.0.0.1:$1" --to "127.0.0.1:$2" \
            --delay "$(python3 -c 'import sys; print(float(sys.argv[1]) / 2)' "$3")"
    fi
    exec "${java[@]}" io.brisk.lettuce.bench.DelayProxy "$1" "$2" "$3"
}

declare -A server_port
start_server() {
    server_port[$1]=$(free_port)
    "$2" --port "${server_port[$1]}" --bind 127.0.0.1 --save "" --appendonly no >/dev/null 2>&1 &
    pids+=($!)
    await_port "${server_port[$1]}"
}

servers=(redis)
start_server redis redis-server
if [ -n "${BRISK_SERVER_BIN:-}" ]; then
    servers+=(brisk)
    start_server brisk "$BRISK_SERVER_BIN"
else
    echo "Brisk is not measured: BRISK_SERVER_BIN is not set"
fi

# LABEL, if set, replaces the server's name in the table.
# measure SERVER RTT_MS THREADS ROUND MODES KEYS BENCHMARK JMH_OPTIONS...
measure() {
    local server=$1 rtt=$2 threads=$3 round=$4 modes=$5 keys=$6 benchmark=$7
    shift 7
    local port=${server_port[$server]} proxy=
    if [ "$rtt" != 0 ]; then
        port=$(free_port)
        delay_proxy "$port" "${server_port[$server]}" "$rtt" >/dev/null &
        proxy=$!
        pids+=("$proxy")
        await_port "$port"
    fi
    echo "== $server, $rtt ms, $threads threads, round $round"
    "${java[@]}" org.openjdk.jmh.Main "Article.$benchmark\$" -p mode="$modes" -p port="$port" -p keys="$keys" \
        -t "$threads" -rf json -rff "$out/${LABEL:-$server}-${rtt}ms-${threads}t-$round.json" "$@" \
        | grep -E '^Article|^Benchmark' || true
    if [ -n "$proxy" ]; then
        kill "$proxy" 2>/dev/null || true
    fi
}

# writes COMMANDS_PER_THREAD
writes() {
    for mode in single single-joined lanes-4-key lanes-4-key-joined multi-4; do
        "${java[@]}" io.brisk.lettuce.bench.Load "$mode" "${server_port[redis]}" 200 "$1" 2>/dev/null | tee -a "$out/writes.txt"
    done
    # The same with strace, to verify the kernel's count. Only these system calls stop the program.
    if command -v strace >/dev/null; then
        for mode in single single-joined; do
            strace -f --seccomp-bpf -c -e trace=write,writev,sendto,sendmsg -o "$out/strace-$mode.txt" \
                "${java[@]}" io.brisk.lettuce.bench.Load "$mode" "${server_port[redis]}" 200 "$(($1 / 5))" 2>/dev/null \
                | sed 's/^/under strace: /' | tee -a "$out/writes.txt"
            awk '$NF ~ /^(write|writev|sendto|sendmsg)$/ { n += $4 } END { print "strace counted " n " writes" }' \
                "$out/strace-$mode.txt" | tee -a "$out/writes.txt"
        done
    fi
}

# Alternating rounds of short runs, so that a disturbance affects all modes; the table shows medians.
brief=(-f 1 -wi 2 -w 2s -i 3 -r 2s -foe true)
if [ "$kind" = smoke ]; then
    measure redis 1 8 1 jedis-8,single-expiry,single-joined,multi-2,lanes-2-least-joined,pool-8,poolraw-8,lease-8 100 '[sg]et' \
        -f 1 -wi 1 -w 100ms -i 1 -r 100ms -foe true
    writes 10
elif [ "$kind" = quick ]; then
    for round in 1 2 3; do
        measure redis 0 200 "$round" single,single-joined,multi-4,lanes-4-key,lanes-4-key-joined,pool-200,lease-200 100000 set \
            "${brief[@]}"
    done
    measure redis 12 200 1 single,single-joined,lanes-4-key-joined 100000 set -f 1 -wi 5 -w 3s -i 5 -r 3s -foe true
    for server in "${servers[@]}"; do
        if [ "$server" != redis ]; then
            measure "$server" 0 200 1 single,single-joined,multi-4,lanes-2-key-joined,lanes-4-key,lanes-4-key-joined,jedis-50 \
                100000 set "${brief[@]}"
        fi
    done
    writes 1000
else
    thorough=(-f 3 -wi 5 -w 5s -i 5 -r 10s -prof gc -foe true)
    rows=jedis-8,jedis-50,jedis-200,single,single-joined,single-expiry,single-expiry-joined
    rows+=,pool-8,pool-50,pool-200,poolraw-8,poolraw-50,poolraw-200,lease-8,lease-50,lease-200,multi-8,multi-200
    for count in 2 4 8; do
        for rule in key thread least; do
            rows+=,lanes-$count-$rule,lanes-$count-$rule-joined
        done
    done
    for server in "${servers[@]}"; do
        for rtt in 0 1 12; do
            for threads in 50 100 200; do
                measure "$server" "$rtt" "$threads" 1 "$rows" 100000 '[sg]et' "${thorough[@]}"
            done
        done
        # One key with a value of 5 bytes.
        LABEL="${server}OneKey" measure "$server" 0 200 1 "$rows" 1 set -p size=5 "${thorough[@]}"
    done
    writes 1000
fi

{
    echo "Host: $(nproc) cores, $(uname -sr), $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), $(java -version 2>&1 | head -1)."
    echo "Client and server share the cores. Lettuce $(ls target/libraries | sed -n 's/^lettuce-core-\(.*\)\.jar/\1/p'), Jedis $(ls target/libraries | sed -n 's/^jedis-\(.*\)\.jar/\1/p')."
    echo
    "${java[@]}" io.brisk.lettuce.bench.Table "$out"/*.json
    echo
    echo "Writes per command, 200 threads:"
    echo
    sed 's/^/    /' "$out/writes.txt"
} > "$out/table.md"
cat "$out/table.md"
