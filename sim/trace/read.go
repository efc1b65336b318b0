package trace

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"os"
)

// bufferSize is how much is read at a time; lines may be longer.
const bufferSize = 64 << 10

// ReadFile ranges over the trace in the named file, which is opened when the
// loop begins and closed when it ends.
//
// Errors: an [*Error] each. A bad line yields one in its place, and the next
// line is next. What ends the file yields one as the last pair: [ErrTruncated],
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
	// current is the line that was read last, number its number.
	current []byte
	number  int
	good    int
	err     error
}

// next reads a line, of any length. Of a text that breaks off, what comes after
// the last newline is no line; of one that ends, it is.
func (s *scanner) next() bool {
	s.current = s.current[:0]
	for s.err == nil {
		part, err := s.text.ReadSlice('\n')
		s.current = append(s.current, part...)
		switch {
		case err == nil:
			s.number++
			return true
		case !errors.Is(err, bufio.ErrBufferFull):
			s.err = err
		}
	}
	if s.err == io.EOF && len(s.current) > 0 {
		s.number++
		return true
	}
	return false
}

// change decodes the current line.
func (s *scanner) change() (Change, error) {
	change, err := decode(s.current)
	if err != nil {
		return Change{}, &Error{File: s.name, Line: s.number, Good: s.good, Err: err}
	}
	s.good++
	return change, nil
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
