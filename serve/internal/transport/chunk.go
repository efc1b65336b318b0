package transport

import "sync"

// The layout of a chunk: its size in four hex digits and the end of that line, up to
// chunkBytes of the answer, and the end of a line.
const (
	chunkHead  = 4 + 2
	chunkBytes = 16<<10 - chunkHead - 2 - 8 // together with the size in memory: 16 KiB
)

// chunk is a chunk of HTTP/1.1 that is being put together.
type chunk struct {
	size int
	text [chunkHead + chunkBytes + 2]byte
}

// chunks are those not in use. A watch has one only while it sends.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// lastChunk is the end of an answer.
var lastChunk = []byte("0\r\n\r\n")

// add appends as much of p as there is room for, and returns how much that is.
func (c *chunk) add(p []byte) int {
	n := copy(c.text[chunkHead+c.size:chunkHead+chunkBytes], p)
	c.size += n
	return n
}

func (c *chunk) full() bool { return c.size == chunkBytes }

// bytes returns the chunk as it is sent.
func (c *chunk) bytes() []byte {
	const digits = "0123456789abcdef"
	for i := range 4 {
		c.text[i] = digits[c.size>>(12-4*i)&0xf]
	}
	copy(c.text[4:], "\r\n")
	end := chunkHead + c.size
	copy(c.text[end:], "\r\n")
	return c.text[:end+2]
}
