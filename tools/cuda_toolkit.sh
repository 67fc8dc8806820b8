# Sourced by tools/setup, tools/quickstart and tools/test: where CUDA's NVRTC and headers come from.
# tools/cmake/attnjit_cuda_headers.cmake looks in the same places for the build.
#
# ATTNJIT_HIDE_TOOLKIT=1 makes all of them act as if no CUDA toolkit were installed.

attnjit_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
wheels="$attnjit_root/.deps/cuda"
wheels_nvrtc="$wheels/nvidia/cu13/lib/libnvrtc.so.13"
minimum_cuda_version=12040

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# Folders of every place where a toolkit may be, the surest first.
toolkit_roots() {
  local nvcc
  [[ -n "${CUDA_HOME:-}" ]] && echo "$CUDA_HOME"
  [[ -n "${CUDA_PATH:-}" ]] && echo "$CUDA_PATH"
  nvcc="$(command -v nvcc)" && dirname "$(dirname "$(readlink -f "$nvcc")")"
  find /usr/local -maxdepth 1 -name 'cuda*' 2>/dev/null | sort -rV
}

# CUDA_VERSION of a folder that has cuda.h, nvrtc.h and libnvrtc; nothing where one is missing.
toolkit_version() {
  local root="$1"
  [[ -e "$root/include/cuda.h" && -e "$root/include/nvrtc.h" ]] || return 0
  compgen -G "$root/lib*/libnvrtc.so.1[23]" >/dev/null || return 0
  sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$root/include/cuda.h" | head -1
}

# Prints the folder of the first toolkit that is new enough; fails where there is none.
find_toolkit() {
  local root version
  [[ "${ATTNJIT_HIDE_TOOLKIT:-}" == 1 ]] && return 1
  while read -r root; do
    version="$(toolkit_version "$root")"
    if ((${version:-0} >= minimum_cuda_version)); then
      echo "$root"
      return 0
    fi
  done < <(toolkit_roots)
  return 1
}

# Without a toolkit, points the library at the wheels' NVRTC.
use_nvrtc_of_wheels() {
  if [[ -z "${ATTNJIT_NVRTC:-}" ]] && ! find_toolkit >/dev/null; then
    export ATTNJIT_NVRTC="$wheels_nvrtc"
  fi
}

# With ATTNJIT_HIDE_TOOLKIT=1, starts the calling script again in a mount namespace where every
# toolkit is an empty folder: neither the build nor a program it runs can then fall back on one.
# Where namespaces are not permitted, the environment alone hides the toolkit, and says so.
hide_toolkit_if_asked() {
  [[ "${ATTNJIT_HIDE_TOOLKIT:-}" == 1 && -z "${ATTNJIT_TOOLKIT_HIDDEN:-}" ]] || return 0
  local roots empty
  mapfile -t roots < <(toolkit_roots | xargs -r -d '\n' readlink -e | sort -u)
  unset CUDA_HOME CUDA_PATH
  export ATTNJIT_TOOLKIT_HIDDEN=1
  ((${#roots[@]})) || return 0
  empty="$attnjit_root/.deps/empty"
  mkdir -p "$empty"
  local isolate=(unshare --mount)
  ((EUID == 0)) || isolate=(unshare --mount --map-root-user)
  if ! "${isolate[@]}" true 2>/dev/null; then
    echo "note: mount namespaces are not permitted here; ${roots[*]} is hidden by settings alone"
    return 0
  fi
  echo "note: hiding the CUDA toolkit in ${roots[*]}"
  exec "${isolate[@]}" bash -c '
    empty="$1"; script="$2"; count="$3"; shift 3
    for root in "${@:1:count}"; do mount --bind "$empty" "$root" || exit 1; done
    exec "$script" "${@:count+1}"' \
    hide "$empty" "$0" "${#roots[@]}" "${roots[@]}" "$@"
}
