//go:build !unix || !(amd64 || arm64 || riscv64 || ppc64le || ppc64 || s390x || loong64 || mips64 || mips64le || 386 || arm || mips || mipsle)

package journal

// reserve is zero, since mapping more here makes the file itself that large.
const reserve = 0
