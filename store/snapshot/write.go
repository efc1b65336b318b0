package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Write writes the newest state of source to w and returns its revision. schema is that
// of the source's objects, as engine.Config's method Schema returns it. It reads pages of one
// revision, so that writers go on meanwhile.
//
// Errors: those of source's List, [store.ErrExpired] if the history does not reach back
// to the first page any more; of the codec, with the key; [backend.ErrTooLarge] with the key
// for an object whose line is longer than MaxLine; of w; [usercode.ErrConfig].
func Write(ctx context.Context, w io.Writer, source backend.ListerWatcher, schema store.Schema, opts Options) (store.Revision, error) {
	if err := opts.validate(); err != nil {
		return 0, err
	}
	opts = opts.withDefaults()
	out := &writer{buffer: bufio.NewWriter(w), schema: schema, opts: opts}
	page := backend.ListOptions{Limit: pageSize}
	for {
		l, err := source.List(ctx, page)
		if err != nil {
			return 0, fmt.Errorf("write snapshot: %w", err)
		}
		if err := out.page(l); err != nil {
			return 0, err
		}
		if page.Continue = l.Continue; page.Continue == "" {
			return l.Revision, out.end()
		}
	}
}

// writer writes lines.
type writer struct {
	buffer  *bufio.Writer
	schema  store.Schema
	opts    Options
	begun   bool
	objects int
	sum     uint32 // of the lines
}

func (w *writer) page(l *backend.List) error {
	if !w.begun {
		w.begun = true
		if err := w.print(header{version, l.Revision}); err != nil {
			return err
		}
	}
	for _, o := range l.Items {
		if err := w.object(o); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) object(o *store.Object) error {
	w.objects++
	tag, data, err := w.encode(o)
	if err != nil {
		return fmt.Errorf("write snapshot: object %q: %w", o.Key, err)
	}
	l := line{Key: o.Key, Revision: o.Revision, Created: min(o.Created, o.Revision), Written: o.Written.UTC(), Expires: o.Expires.UTC()}
	if tag == 0 && unchanged(data) {
		l.Value = data
	} else {
		l.Tag, l.Bytes = tag, data
	}
	text, err := json.Marshal(l)
	if err == nil && len(text) > w.opts.MaxLine {
		err = fmt.Errorf("%w, or raise Options.MaxLine", &backend.TooLargeError{Size: len(text), Limit: w.opts.MaxLine})
	}
	if err != nil {
		return fmt.Errorf("write snapshot: object %q: %w", o.Key, err)
	}
	return w.write(text)
}

// encode encodes the value of o. A panic, as of the value's own methods, is an error.
func (w *writer) encode(o *store.Object) (tag uint8, data []byte, err error) {
	panicked := usercode.Call("Codec.Encode", o.Key, func() { tag, data, err = w.opts.Codec.Encode(w.schema.Pointer(o)) })
	if panicked != nil {
		return 0, nil, panicked
	}
	return tag, data, err
}

// unchanged reports whether data is JSON that encoding/json writes as it is.
func unchanged(data []byte) bool {
	text, err := json.Marshal(json.RawMessage(data))
	return err == nil && bytes.Equal(text, data)
}

// end writes the last line.
func (w *writer) end() error {
	sum := w.sum
	if err := w.print(line{End: &w.objects, Sum: &sum}); err != nil {
		return err
	}
	if err := w.buffer.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

func (w *writer) print(l any) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return w.write(text)
}

// write writes a line.
func (w *writer) write(text []byte) error {
	text = append(text, '\n')
	w.sum = crc32.Update(w.sum, castagnoli, text)
	if _, err := w.buffer.Write(text); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}
