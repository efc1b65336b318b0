package remote

import (
	"bufio"
	"fmt"
	"io"
)

// values reads the text of one JSON value after the other. It finds where a value ends and leaves it to the value's
// decoder to find whether it is JSON, so that a list is parsed once, and is never in memory as a whole.
type values struct {
	in *bufio.Reader
	// text is what has been read of a value.
	text []byte
	// depth is how many objects and arrays are open there. quoted: so is a string; escaped: its last byte was a backslash.
	depth           int
	quoted, escaped bool
}

// newValues returns the values in from. What is read of that at once is little: a slow server may take as long for it
// before the first value is known.
func newValues(from io.Reader) *values { return &values{in: bufio.NewReaderSize(from, 4<<10)} }

// next returns the text of the next value, valid until the next call.
func (v *values) next() ([]byte, error) {
	if _, err := v.peek(); err != nil {
		return nil, err
	}
	v.text, v.depth, v.quoted, v.escaped = v.text[:0], 0, false, false
	for {
		arrived, err := v.arrived()
		if err != nil {
			return nil, err
		}
		n, complete := v.scan(arrived)
		v.text = append(v.text, arrived[:n]...)
		v.skip(n)
		if complete {
			return v.text, nil
		}
	}
}

// scan returns how many of the bytes that have arrived are of the value, and whether that ends with them.
func (v *values) scan(arrived []byte) (n int, complete bool) {
	for i, c := range arrived {
		switch {
		case v.escaped:
			v.escaped = false
		case v.quoted:
			v.quoted, v.escaped = c != '"', c == '\\'
			if !v.quoted && v.depth == 0 {
				return i + 1, true
			}
		case c == '"':
			v.quoted = true
		case c == '{' || c == '[':
			v.depth++
		case c == '}' || c == ']':
			if v.depth--; v.depth < 0 { // it ends what the value is in
				return i, true
			}
			if v.depth == 0 {
				return i + 1, true
			}
		case v.depth == 0 && (c == ',' || c == ':' || isBlank(c)):
			return i, true
		}
	}
	return len(arrived), false
}

// members reads what is in an object or array up to its end, whose beginning has been read. It calls read for each member.
func (v *values) members(end byte, read func() error) error {
	switch c, err := v.peek(); {
	case err != nil:
		return err
	case c == end:
		return v.expect(end)
	}
	for {
		if err := read(); err != nil {
			return err
		}
		switch c, err := v.take(); {
		case err != nil:
			return err
		case c == end:
			return nil
		case c != ',':
			return fmt.Errorf("there is %q in place of a comma", c)
		}
	}
}

// expect reads a byte, which is to be want.
func (v *values) expect(want byte) error {
	c, err := v.take()
	if err == nil && c != want {
		return fmt.Errorf("there is %q in place of %q", c, want)
	}
	return err
}

// take reads the next byte that is no blank.
func (v *values) take() (byte, error) {
	c, err := v.peek()
	if err == nil {
		v.skip(1)
	}
	return c, err
}

// peek returns the next byte that is no blank, without reading it.
func (v *values) peek() (byte, error) {
	for {
		next, err := v.in.Peek(1)
		if err != nil {
			return 0, err
		}
		if !isBlank(next[0]) {
			return next[0], nil
		}
		v.skip(1)
	}
}

// arrived returns what has arrived and has not been read, a byte or more.
func (v *values) arrived() ([]byte, error) {
	if _, err := v.in.Peek(1); err != nil {
		return nil, err
	}
	return v.in.Peek(v.in.Buffered())
}

// skip reads bytes that have arrived.
func (v *values) skip(n int) { _, _ = v.in.Discard(n) } // without an error, since they have arrived

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
