package snapshot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"reflect"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// State is a snapshot that was read.
type State struct {
	// Revision is that of the storage when the snapshot was written.
	Revision store.Revision
	// Objects are in the order of their keys.
	Objects []*store.Object
}

// Read reads a whole snapshot. Its objects are for a new storage in memory, as
// memory.Options.Objects, which takes labels and fields from the values.
//
// Errors: a [*ReadError] with the line and the field; the reader's;
// [usercode.ErrConfig].
func Read(r io.Reader, schema store.Schema, opts Options) (*State, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	in := &reader{input: bufio.NewScanner(r), schema: schema, opts: opts}
	in.input.Buffer(nil, min(opts.MaxLine, math.MaxInt-1)+1) // with the line's end
	return in.read()
}

// reader reads lines.
type reader struct {
	input  *bufio.Scanner
	schema store.Schema
	opts   Options
	state  State
	line   int
	sum    uint32 // of the lines before
}

func (r *reader) read() (*State, error) {
	if err := r.header(); err != nil {
		return nil, err
	}
	for {
		var l line
		if err := r.next(&l); err != nil {
			return nil, err
		}
		if l.End != nil {
			if !reflect.DeepEqual(l, line{End: l.End, Sum: l.Sum}) {
				return nil, r.wrong("end", "cannot be in the line of an object", nil)
			}
			return r.end(*l.End, l.Sum)
		}
		if err := r.object(&l); err != nil {
			return nil, err
		}
	}
}

// header reads the first line, which in a later version may have unknown fields.
func (r *reader) header() error {
	var first header
	err := r.next(&first)
	var later struct{ Snapshot int }
	if err != nil && json.Unmarshal(r.input.Bytes(), &later) == nil && later.Snapshot > version {
		first.Snapshot, err = later.Snapshot, nil
	}
	switch {
	case err != nil:
		return err
	case first.Snapshot != version:
		return r.wrong("snapshot", fmt.Sprintf("is %d; this program reads version %d", first.Snapshot, version), nil)
	}
	r.state.Revision = first.Revision
	return nil
}

// next reads a line.
func (r *reader) next(into any) error {
	if r.line > 0 {
		r.sum = crc32.Update(crc32.Update(r.sum, castagnoli, r.input.Bytes()), castagnoli, []byte{'\n'})
	}
	r.line++
	if !r.input.Scan() {
		switch err := r.input.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return r.wrong("", fmt.Sprintf("is longer than %d bytes; see Options.MaxLine", r.opts.MaxLine), nil)
		case err != nil:
			return fmt.Errorf("read snapshot: line %d: %w", r.line, err)
		}
		return r.wrong("", "is missing: the snapshot was cut off", nil)
	}
	decoder := json.NewDecoder(bytes.NewReader(r.input.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return r.wrong("", "is not a line of a snapshot", err)
	}
	if decoder.InputOffset() != int64(len(r.input.Bytes())) {
		return r.wrong("", "has something after its JSON object", nil)
	}
	return nil
}

// object adds the object of a line.
func (r *reader) object(l *line) error {
	if err := store.ValidateKey(l.Key); err != nil {
		return r.wrong("key", "is not valid", err)
	}
	switch n := len(r.state.Objects); {
	case l.Sum != nil:
		return r.wrong("sum", "cannot be in the line of an object", nil)
	case n > 0 && r.state.Objects[n-1].Key >= l.Key:
		return r.wrong("key", fmt.Sprintf("%q does not come after that of the line before", l.Key), nil)
	case l.Revision == 0 || l.Revision > r.state.Revision:
		return r.wrong("revision", fmt.Sprintf("is %d; it must be between 1 and that of the snapshot, %d", l.Revision, r.state.Revision), nil)
	case l.Created == 0 || l.Created > l.Revision:
		return r.wrong("created", fmt.Sprintf("is %d; it must be between 1 and the object's revision, %d", l.Created, l.Revision), nil)
	}
	data := l.Bytes
	if l.Value != nil {
		if l.Tag != 0 || data != nil {
			return r.wrong("value", "cannot be in a line with tag or bytes", nil)
		}
		data = l.Value
	}
	o := r.schema.New()
	o.Key, o.Revision, o.Created, o.Written, o.Expires = l.Key, l.Revision, l.Created, l.Written, l.Expires
	if err := r.decode(l.Tag, data, o); err != nil {
		return r.wrong("value", "cannot be decoded", err)
	}
	r.state.Objects = append(r.state.Objects, o)
	return nil
}

// decode decodes the value of o. A panic, as of the value's own methods, is an error.
func (r *reader) decode(tag uint8, data []byte, o *store.Object) (err error) {
	panicked := usercode.Call("Codec.Decode", o.Key, func() { err = r.opts.Codec.Decode(tag, data, r.schema.Pointer(o)) })
	if panicked != nil {
		return panicked
	}
	return err
}

// end checks that everything is there as it was written, if there is a sum, and nothing else.
func (r *reader) end(objects int, sum *uint32) (*State, error) {
	switch {
	case objects != len(r.state.Objects):
		return nil, r.wrong("end", fmt.Sprintf("is %d, but there are %d objects", objects, len(r.state.Objects)), nil)
	case sum != nil && *sum != r.sum:
		return nil, r.wrong("sum", fmt.Sprintf("is %d, but that of the lines before is %d: something was changed or damaged", *sum, r.sum), nil)
	}
	r.line++
	if r.input.Scan() {
		return nil, r.wrong("", "comes after the end", nil)
	}
	if err := r.input.Err(); err != nil {
		return nil, fmt.Errorf("read snapshot: line %d: %w", r.line, err)
	}
	return &r.state, nil
}

func (r *reader) wrong(field, problem string, err error) error {
	return &ReadError{Line: r.line, Field: field, Problem: problem, Err: err}
}
