# Sourced by benchmarks/run and tests/run: what a fresh Debian 12 lacks, and how the library is built.
# shellcheck shell=bash disable=SC2034

ringccl_build_packages="g++ cmake ninja-build pkg-config libssl-dev libhwy-dev libspdlog-dev libfmt-dev libasio-dev
  libcli11-dev nlohmann-json3-dev"
ringccl_test_packages="libgtest-dev libgmock-dev libbenchmark-dev iproute2 patch python3"

# The distribution's Python, to which its packages belong; another may come first in PATH.
ringccl_python=python3
[ ! -x /usr/bin/python3 ] || ringccl_python=/usr/bin/python3

# need_packages NAME...: installs the Debian packages that are missing, as root or through sudo; without either it says what to
# type and ends the script. On other systems it only checks that there is a build tool to go on with.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    command -v cmake >/dev/null && command -v ninja >/dev/null && return
    echo "This is not a Debian or Ubuntu system. Install the equivalents of: $*" >&2
    exit 1
  fi
  local name missing=()
  for name in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    # With a terminal sudo may ask for the password.
    if ! command -v sudo >/dev/null || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      echo "Some packages are missing. Install them with this line, then start again:" >&2
      echo "  apt-get install -y --no-install-recommends ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# configure_and_build SOURCE BUILD [CMAKE_ARGUMENT...]: quiet when all goes well; the whole log on failure.
configure_and_build() {
  local source=$1 build=$2 log
  shift 2
  mkdir -p "$build"
  log=$build/setup.log
  echo "Building in $build, which takes some minutes the first time (log: $log)"
  if ! { cmake -S "$source" -B "$build" -G Ninja "$@" && cmake --build "$build"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "The build failed; the log above is also in $log" >&2
    exit 1
  fi
}

# build_benchmarks ROOT: builds what the scripts of benchmarks/ start, and sets `build` to where: $BUILD, or ROOT/build.
build_benchmarks() {
  build=${BUILD:-$1/build}
  if [ -f "$build/CMakeCache.txt" ]; then
    configure_and_build "$1" "$build"
  else
    configure_and_build "$1" "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRINGCCL_TESTS=OFF \
      -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)"
  fi
}

# run_tests BUILD [CTEST_ARGUMENT...]: runs ctest and says its verdict once more, as the last line.
run_tests() {
  local build=$1 log status=0
  shift
  log=$build/tests.log
  ctest --test-dir "$build" -j"$(nproc)" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log" || status=1
  grep 'tests passed' "$log" | tail -n 1
  return $status
}
