package trace

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// magic is how a gzip stream begins. No JSON does.
var magic = []byte{0x1f, 0x8b}

// uncompressed returns the text in r, which is compressed or not.
func uncompressed(r io.Reader) (*bufio.Reader, error) {
	raw := bufio.NewReaderSize(r, bufferSize)
	// An error here comes again with the first read.
	if start, _ := raw.Peek(len(magic)); !bytes.Equal(start, magic) {
		return raw, nil
	}
	text, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(text, bufferSize), nil
}

// damage tells a gzip stream that was cut short, and one that was altered, from
// other errors of reading.
func damage(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
