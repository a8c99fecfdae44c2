#!/usr/bin/env bash
# Builds and tests the core with each supported Lettuce, and the integrations with each Spring. Then a separate project
# uses the artifacts as they would be published. Arguments are passed to Maven, for example -Dtest='!OrderTest'.
set -euo pipefail
cd "$(dirname "$0")"

# Clean, since classes that were compiled against one version would be used with another.
for lettuce in 6.4.2.RELEASE 6.8.2.RELEASE 7.0.0.RELEASE 7.7.0.RELEASE; do
    echo "matrix: Lettuce $lettuce"
    mvn -B -ntp -q clean verify -pl testkit,lanes -Dmaven.javadoc.skip -Dlettuce.version="$lettuce" "$@"
done

# Versions of Spring Boot, and the Lettuce that each was released with.
for pair in 3.5.7:6.6.0.RELEASE 4.0.7:6.8.2.RELEASE 4.1.2:7.5.2.RELEASE; do
    echo "matrix: Spring Boot ${pair%%:*} with Lettuce ${pair##*:}"
    # The core is compiled against the oldest Lettuce, as in a release.
    mvn -B -ntp -q clean verify -pl testkit,lanes,spring,spring-boot -Dmaven.javadoc.skip -Dspring-boot.version="${pair%%:*}" \
        -Dspring.lettuce.version="${pair##*:}" -Dtest='LanesLettuceConnectionFactoryTest,LanesAutoConfigurationTest' \
        -Dsurefire.failIfNoSpecifiedTests=false
done

consumer/run.sh
echo "matrix: all passed"
