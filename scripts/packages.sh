# packages.sh: sourced by the other scripts: installs the Debian packages that are missing, or says which.
# SPDX-License-Identifier: Apache-2.0

# need COMMAND-OR-FILE PACKAGE: notes PACKAGE as missing unless the command or the file is there.
missing=()
need() {
  case "$1" in
    /*) compgen -G "$1" > /dev/null && return 0 ;;
    *) command -v "$1" > /dev/null 2>&1 && return 0 ;;
  esac
  missing+=("$2")
}

# need_python MODULE PACKAGE: the same for a module of the system's Python.
need_python() {
  /usr/bin/python3 -c "import $1" > /dev/null 2>&1 || missing+=("$2")
}

# install_missing: as root, or with sudo when it asks for no password; otherwise says what to type and fails.
install_missing() {
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo > /dev/null 2>&1 && sudo -n true 2> /dev/null; then
      as_root=(sudo -n)
    else
      printf 'missing packages; as root, type:\n  apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
      return 1
    fi
  fi
  if ! command -v apt-get > /dev/null 2>&1; then
    printf 'missing, and there is no apt-get here to install them (names are Debian'"'"'s): %s\n' "${missing[*]}" >&2
    return 1
  fi
  printf '   installing %s\n' "${missing[*]}"
  local log
  log=$(mktemp)
  # Lists may be absent or old, so update first; should that fail (a foreign source), the installation decides.
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
  "${apt[@]}" update > "$log" 2>&1 < /dev/null || true
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >> "$log" 2>&1 < /dev/null; then
    tail -n 25 "$log" >&2
    rm -f "$log"
    printf 'the packages could not be installed\n' >&2
    return 1
  fi
  rm -f "$log"
  missing=()
}

need_build_packages() {
  need gcc gcc
  need /usr/include/stdio.h libc6-dev
  need meson meson
  need ninja ninja-build
  need /usr/include/readline/readline.h libreadline-dev
  need /usr/bin/python3 python3
}

need_test_packages() {
  need_build_packages
  need clang clang
  need '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' libclang-rt-dev
  need clang-format clang-format
  need valgrind valgrind
  need objdump binutils
  need g++ g++
  need pkg-config pkg-config
  need zsh zsh
  need patch patch
  need groff groff-base
  need /usr/bin/FileCheck-19 llvm-19-tools
  need /usr/bin/llvm-config-19 llvm-19-dev
  need /usr/bin/qemu-aarch64 qemu-user
  if apt-cache show llvm-22-dev > /dev/null 2>&1; then need /usr/bin/llvm-config-22 llvm-22-dev; fi
  need_python numpy python3-numpy
}
