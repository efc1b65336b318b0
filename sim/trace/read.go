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

// MaxLine is the most bytes that a line may have, without its newline: 1 MiB. It
// bounds the memory that reading takes, whatever the file holds.
const MaxLine = 1 << 20

// bufferSize is how much is read at a time; lines may be longer.
const bufferSize = 64 << 10

// ReadFile ranges over the trace in the named file, which is opened when the
// loop begins and closed when it ends.
//
// Errors: an [*Error] each. A bad line yields one in its place, and the line
// after it is next. What ends the file yields one as the last pair: [ErrTruncated],
// [ErrCorrupt], [ErrEmpty], or what opening or reading it met, such as
// fs.ErrNotExist.
func ReadFile(path string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			var reason *os.PathError
			if errors.As(err, &reason) {
				err = reason.Err // the path is told already
			}
			yield(Change{}, &Error{File: path, Err: err})
			return
		}
		defer f.Close()
		Read(path, f)(yield)
	}
}

// Read ranges over the trace that r holds. The name stands for it in errors,
// which are those of [ReadFile]. It reads r to its end, or until the loop is
// left; a second loop would go on where the first one stopped.
func Read(name string, r io.Reader) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		s := scanner{name: name}
		text, err := uncompressed(r)
		if err != nil {
			yield(Change{}, s.fail(err))
			return
		}
		s.text = text
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

// scanner goes through a text line by line.
type scanner struct {
	name string
	text *bufio.Reader
	// current is the line that was read last, number its number. It is not whole
	// if the line is tooLong.
	current []byte
	number  int
	tooLong bool
	// within: the end of the current line has yet to be read.
	within bool
	good   int
	err    error
}

// next reads a line, and of a line that is too long its beginning. Of a text that
// breaks off, what comes after the last newline is no line; of one that ends, it
// is.
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

// read returns the next part of the current line, and whether the line ends with
// it. The part is valid until the next read.
func (s *scanner) read() (part []byte, ended bool) {
	part, err := s.text.ReadSlice('\n')
	s.within = errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !s.within {
		s.err = err
	}
	return part, err == nil
}

// skip reads what is left of the current line, without keeping it.
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

// end returns what is wrong with the file, nil if it ended well.
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
	return &Error{File: s.name, Good: s.good, Err: damage(err)}
}

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
