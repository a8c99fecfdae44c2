#!/usr/bin/env bash
# Stages the artifacts in a local repository, like a deployment, and runs the consumer with each Lettuce from there.
set -euo pipefail
cd "$(dirname "$0")"

staged="$PWD/target/staged"
rm -rf "$staged"
(cd .. && mvn -B -ntp -q clean deploy -pl .,testkit,lanes,spring,spring-boot -DskipTests \
    -DaltDeploymentRepository="staged::file://$staged")
for artifact in brisk-lettuce-lanes brisk-lettuce-lanes-spring brisk-lettuce-lanes-spring-boot; do
    for kind in .pom .jar -sources.jar -javadoc.jar; do
        [ -f "$staged/io/brisk/$artifact/0.1.0/$artifact-0.1.0$kind" ] || { echo "not staged: $artifact$kind" >&2; exit 1; }
    done
    for licence in LICENSE-APACHE LICENSE-MIT; do
        [[ $(jar tf "$staged/io/brisk/$artifact/0.1.0/$artifact-0.1.0.jar") == *META-INF/$licence* ]] \
            || { echo "not in $artifact: $licence" >&2; exit 1; }
    done
done
[ ! -e "$staged/io/brisk/brisk-lettuce-testkit" ] || { echo "the test kit must not be published" >&2; exit 1; }

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --save "" --appendonly no >/dev/null 2>&1 &
server=$!

# Moves installed artifacts aside, since Maven would use them instead of the staged ones.
cache=$(mvn -B -q help:evaluate -Dexpression=settings.localRepository -DforceStdout)/io/brisk
kept="$PWD/target/kept"
ours=(brisk-lettuce-lanes brisk-lettuce-parent)
mkdir -p "$kept"
forget() {
    for name in "${ours[@]}"; do
        rm -rf "${cache:?}/$name"
    done
}
end() {
    kill "$server" 2>/dev/null || true
    forget
    for name in "${ours[@]}"; do
        [ ! -e "$kept/$name" ] || mv "$kept/$name" "$cache/"
    done
}
trap end EXIT
for name in "${ours[@]}"; do
    # Artifacts that are already there were moved by a run that was interrupted.
    [ ! -e "$cache/$name" ] || [ -e "$kept/$name" ] || mv "$cache/$name" "$kept/"
done

for lettuce in 6.4.2.RELEASE 6.8.2.RELEASE 7.0.0.RELEASE 7.7.0.RELEASE; do
    echo "consumer: Lettuce $lettuce"
    forget
    mvn -B -ntp -q compile dependency:build-classpath -Dmdep.outputFile=target/classpath -Dlettuce.version="$lettuce" \
        -Dstaged="file://$staged"
    java -cp "target/classes:$(cat target/classpath)" example.Main "$port" 2>/dev/null
done
