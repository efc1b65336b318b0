//go:build unix && (386 || arm || mips || mipsle)

package journal

// reserve is how many bytes of address space a file is mapped into, so that it can grow
// without a new mapping, which waits for all readers. A 32-bit process has little address
// space.
const reserve = 1 << 26
