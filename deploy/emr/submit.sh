#!/usr/bin/env bash
# Start a job on EMR Serverless.
#
#   APPLICATION_ID=… ROLE_ARN=… BUCKET=… [PREFIX=snavio] deploy/emr/submit.sh audit|report
#
# The application is of release emr-spark-8.0.0. BUCKET holds, under spark/, what package.sh wrote, and the lake under
# lake/; ROLE_ARN is that of <prefix>-auditor. `snavio provision` makes both. `audit` runs on and on with one warm session;
# `report` runs once, for a scheduler to start every hour.
set -euo pipefail
: "${APPLICATION_ID:?}" "${ROLE_ARN:?}" "${BUCKET:?}"
export BUCKET PREFIX=${PREFIX:-snavio}
job=${1:?audit or report}
here=$(dirname "$0")

case $job in
  audit) mode=(--mode STREAMING --retry-policy maxFailedAttemptsPerHour=10) ;;
  report) mode=(--mode BATCH --execution-timeout-minutes 50) ;;
  *) echo "There is audit and report, no $job." >&2; exit 2 ;;
esac

aws emr-serverless start-job-run \
  --application-id "$APPLICATION_ID" \
  --execution-role-arn "$ROLE_ARN" \
  --name "$PREFIX-$job" \
  "${mode[@]}" \
  --job-driver "$(envsubst '$BUCKET $PREFIX' < "$here/$job.json")"
