package remote

import (
	"bufio"
	"bytes"
	"errors"
)

// errFrameTooLarge is the error of a line that is longer than the limit.
var errFrameTooLarge = errors.New("it is larger than MaxFrameBytes and remote.Config.BufferBytes; if it is right, raise that")

// lineReader reads lines of bounded length.
type lineReader struct {
	in    *bufio.Reader
	limit int
	line  []byte
}

// next returns the next line, valid until the next call, and whether another complete
// line is buffered. An incomplete line at the end of the connection is dropped; err is
// then the connection's.
func (l *lineReader) next() (line []byte, more bool, err error) {
	l.line = l.line[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case len(l.line)+len(part) > l.limit:
			return nil, false, errFrameTooLarge
		case err == nil:
			ahead, _ := l.in.Peek(l.in.Buffered()) // it is buffered, so there is no error
			return append(l.line, part[:len(part)-1]...), bytes.IndexByte(ahead, '\n') >= 0, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
		l.line = append(l.line, part...)
	}
}
