#!/usr/bin/env bash
# Builds and tests the core with each Lettuce it serves and the bridges with each Spring, then has a project outside of
# this build use the artifacts as they would be published. Arguments go to Maven, such as -Dtest='!OrderTest'.
set -euo pipefail
cd "$(dirname "$0")"

# Clean, for classes compiled against one version would be taken for another.
for lettuce in 6.4.2.RELEASE 6.8.2.RELEASE 7.0.0.RELEASE 7.7.0.RELEASE; do
    echo "matrix: Lettuce $lettuce"
    mvn -B -ntp -q clean verify -pl testkit,lanes -Dmaven.javadoc.skip -Dlettuce.version="$lettuce" "$@"
done

# Spring Boot, and the Lettuce it was released with.
for pair in 3.5.7:6.6.0.RELEASE 4.0.7:6.8.2.RELEASE 4.1.2:7.5.2.RELEASE; do
    echo "matrix: Spring Boot ${pair%%:*} with Lettuce ${pair##*:}"
    # The core stays compiled against the oldest Lettuce, as it is published.
    mvn -B -ntp -q clean verify -pl testkit,lanes,spring,spring-boot -Dmaven.javadoc.skip -Dspring-boot.version="${pair%%:*}" \
        -Dspring.lettuce.version="${pair##*:}" -Dtest='LanesLettuceConnectionFactoryTest,LanesAutoConfigurationTest' \
        -Dsurefire.failIfNoSpecifiedTests=false
done

consumer/run.sh
echo "matrix: all passed"
