package trace

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// MaxLine is the maximum length of a line in bytes, without its newline: 1 MiB. It
// bounds the memory that reading takes, whatever the file contains.
const MaxLine = 1 << 20

// bufferSize is the size of reads in bytes; lines may be longer.
const bufferSize = 64 << 10

// ReadFile ranges over the trace in the named file, which is opened when the
// loop begins and closed when it ends.
//
// Errors: [*Error]. A bad line yields an error in place of its change, and the loop
// may go on with the next line. The errors that end the iteration are [ErrTruncated],
// [ErrCorrupt], [ErrEmpty], and those of opening or reading the file, such as
// fs.ErrNotExist.
func ReadFile(path string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			if reason, ok := errors.AsType[*os.PathError](err); ok {
				err = reason.Err // Error has the path
			}
			yield(Change{}, &Error{File: path, Err: err})
			return
		}
		defer f.Close()
		Read(path, f)(yield)
	}
}

// Read ranges over the trace in r. The name is the file's name in errors, which are
// those of [ReadFile]. It reads r up to its end or until the loop ends; a second loop
// would continue where the first one stopped.
func Read(name string, r io.Reader) iter.Seq2[Change, error] {
	s := scanner{name: name}
	return func(yield func(Change, error) bool) {
		if err := s.begin(r); err != nil {
			yield(Change{}, s.fail(err))
			return
		}
		for s.next() {
			change, err := s.change()
			if !yield(change, err) {
				return
			}
		}
		if err := s.end(); err != nil {
			yield(Change{}, err)
		}
	}
}

// scanner reads a text line by line.
type scanner struct {
	name string
	text *bufio.Reader
	// current is the current line and number its number, counted from 1. If the line is
	// too long, current is its beginning.
	current []byte
	number  int
	tooLong bool
	// within is set while the end of the current line has not been read.
	within bool
	good   int   // number of good lines
	err    error // the first error of reading, io.EOF at the end
}

// begin makes the scanner read r, unless it does already.
func (s *scanner) begin(r io.Reader) (err error) {
	if s.text == nil {
		s.text, err = uncompressed(r)
	}
	return err
}

// next reads the next line, or the beginning of a line that is too long. It reports
// whether there is one. Text after the last newline is a line at the end of the text, but
// not before an error of reading.
func (s *scanner) next() bool {
	s.skip()
	s.current, s.tooLong = s.current[:0], false
	for s.err == nil {
		part, ended := s.read()
		if s.tooLong = len(s.current)+len(bytes.TrimSuffix(part, newline)) > MaxLine; s.tooLong {
			s.number++
			return true
		}
		s.current = append(s.current, part...)
		if ended {
			s.number++
			return true
		}
	}
	if s.err == io.EOF && len(s.current) > 0 {
		s.number++
		return true
	}
	return false
}

var newline = []byte{'\n'}

// read returns the next part of the current line, and whether it is the last. The
// part is valid until the next read.
func (s *scanner) read() (part []byte, ended bool) {
	part, err := s.text.ReadSlice('\n')
	s.within = errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !s.within {
		s.err = err
	}
	return part, err == nil
}

// skip discards the rest of the current line.
func (s *scanner) skip() {
	for s.within && s.err == nil {
		s.read()
	}
}

// change decodes the current line.
func (s *scanner) change() (Change, error) {
	change, err := s.decode()
	if err != nil {
		return Change{}, &Error{File: s.name, Line: s.number, Good: s.good, Err: err}
	}
	s.good++
	return change, nil
}

func (s *scanner) decode() (Change, error) {
	if s.tooLong {
		return Change{}, fmt.Errorf("%w: the most is %d bytes", ErrLineTooLong, MaxLine)
	}
	return decode(s.current)
}

// end returns the error of the file, nil if it was read to its end.
func (s *scanner) end() error {
	switch {
	case s.err != io.EOF:
		return s.fail(s.err)
	case s.number == 0:
		return s.fail(ErrEmpty)
	}
	return nil
}

func (s *scanner) fail(err error) error {
	return &Error{File: s.name, Good: s.good, Err: readError(err)}
}

// gzipMagic is the beginning of a gzip stream, which is not valid JSON.
var gzipMagic = []byte{0x1f, 0x8b}

// uncompressed returns the text in r, which may be compressed.
func uncompressed(r io.Reader) (*bufio.Reader, error) {
	raw := bufio.NewReaderSize(r, bufferSize)
	start, err := raw.Peek(len(gzipMagic))
	switch {
	case err != nil && err != io.EOF: // the reader may not return it again
		return nil, err
	case !bytes.Equal(start, gzipMagic):
		return raw, nil
	}
	text, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(text, bufferSize), nil
}

// readError marks an error of reading as [ErrTruncated] or [ErrCorrupt] if gzip says
// so.
func readError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
