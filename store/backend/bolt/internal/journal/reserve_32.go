//go:build unix && (386 || arm || mips || mipsle)

package journal

// reserve is how much of the address space a file is mapped into, so that it can
// grow without a new mapping, which waits for all readers. There is little of it
// with 32 bits.
const reserve = 1 << 26
