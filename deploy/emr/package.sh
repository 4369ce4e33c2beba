#!/usr/bin/env bash
# Pack a relocatable Python with snavio.spark and all it needs, for `spark.archives` of EMR Serverless.
#
#   deploy/emr/package.sh [folder]      writes <folder>/environment.tar.gz and <folder>/job.py (default: dist/emr)
#
# Run it on Linux of the application's architecture. Spark itself is left out: EMR brings its own, and two would clash.
# PYTHON_HOME may name a relocatable Python 3.11 to pack; without it, uv installs one. UV may name uv; without it, the one on
# the path is used, or the one `make setup` uses.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${1:-dist/emr}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

uv=${UV:-$(command -v uv || echo .tools/bin/uv)}
command -v "$uv" > /dev/null || tools/fetch-uv .tools

if [[ -n ${PYTHON_HOME:-} ]]; then
  cp -a "$PYTHON_HOME" "$work/environment"
else
  "$uv" python install --no-bin --install-dir "$work/python" 3.11 || {
    echo "package: uv could not fetch a Python 3.11; name a relocatable one with PYTHON_HOME." >&2
    exit 1
  }
  mv "$work"/python/cpython-3.11* "$work/environment"
fi
python="$work/environment/bin/python3.11"
rm -f "$work"/environment/lib/python3.11/EXTERNALLY-MANAGED

# The versions that were tested, and no others.
grep -E '^[A-Za-z0-9]' requirements.txt | sed 's/ *\\$//' > "$work/constraints.txt"
"$uv" pip install --quiet --system --python "$python" --constraint "$work/constraints.txt" \
  ./libs/wire ./libs/domain ./libs/aws ./libs/registry ./spark
# Whatever the jobs import is there; only then may what EMR brings go.
"$python" -I -c 'import snavio.spark.cli'
"$uv" pip uninstall --quiet --system --python "$python" pyspark py4j
find "$work/environment" -name __pycache__ -type d -prune -exec rm -rf {} +

tar --create --gzip --file "$out/environment.tar.gz" --directory "$work/environment" .
cp deploy/emr/job.py "$out/job.py"
echo "$out/environment.tar.gz $(du -h "$out/environment.tar.gz" | cut -f1)"
