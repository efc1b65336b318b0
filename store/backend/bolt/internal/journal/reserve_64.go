//go:build unix && (amd64 || arm64 || riscv64 || ppc64le || ppc64 || s390x || loong64 || mips64 || mips64le)

package journal

// reserve is how many bytes of address space a file is mapped into, so that it can grow
// without a new mapping, which waits for all readers.
const reserve = 1 << 36
