//go:build !unix || !(amd64 || arm64 || riscv64 || ppc64le || ppc64 || s390x || loong64 || mips64 || mips64le)

package journal

// reserve is zero: address space is scarce, or the file would become that large.
const reserve = 0
