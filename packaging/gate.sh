#!/bin/sh
# Verifies traces in a job of GitHub Actions: annotations, a SARIF file, and a summary of the job.
#
#   gate.sh TRACE...
#
# ARGUMENTS are further options of etlverify, SARIF the name of the SARIF file. The exit code is
# that of etlverify: 0 complete; 1 incomplete, or something was lost; 2 a file cannot be read.
set -euf

code=0
# The options are words: they are split here on purpose.
# shellcheck disable=SC2086
etlverify --format github --report "sarif=${SARIF:-etlverify.sarif}" \
  --report markdown=etlverify.md ${ARGUMENTS:-} "$@" || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f etlverify.md ]; then
  cat etlverify.md >>"$GITHUB_STEP_SUMMARY"
fi
exit $code
