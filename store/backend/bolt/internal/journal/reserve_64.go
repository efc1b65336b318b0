//go:build unix && (amd64 || arm64 || riscv64 || ppc64le || ppc64 || s390x || loong64 || mips64 || mips64le)

package journal

// reserve is how much of the address space a file is mapped into, so that it can
// grow without a new mapping, which would block all readers.
const reserve = 1 << 36
