package serve

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/encode"
	"github.com/watchmill/watchmill/store"
)

// initialEndAnnotation is on the bookmark that ends an initial state.
const initialEndAnnotation = "k8s.io/initial-events-end"

// frames turns the events of one watch into the frames that are sent.
type frames struct {
	c     *call
	table *encode.Table // nil unless the client asked for tables
	first bool          // no table was sent yet
	// initialEnd: the client asked for a bookmark at the end of the initial state.
	initialEnd bool
	meter      *watchMeter // nil until the watch has begun
	sent       uint64      // frames, since the last flush
	text       []byte      // of the last frame, for its memory
	messages   *messages   // nil unless the connection was upgraded
}

// event returns the JSON of an event's object.
func (f *frames) event(item registry.Item) ([]byte, error) {
	if f.table == nil {
		form := f.c.form
		if form.Shape == accept.Events {
			form.Shape = accept.Whole
		}
		return f.c.encodings.ForEvent(encode.State{Item: item, Form: form})
	}
	row, err := f.table.Row(item)
	if err != nil {
		return nil, err
	}
	return f.single(item.Revision().String(), row)
}

func (f *frames) single(version string, row []byte) ([]byte, error) {
	withColumns := f.first
	f.first = false
	return f.table.Single(version, row, withColumns)
}

// bookmark returns the JSON of a bookmark's object. It is put together by hand, since that
// needs little stack: the bookmark that begins a quiet watch is the deepest call of many.
func (f *frames) bookmark(ev *store.Event) ([]byte, error) {
	apiVersion, name := f.c.info.Kind.GroupVersionKind().ToAPIVersionAndKind()
	if f.c.form.Shape == accept.Partial || f.table != nil {
		apiVersion, name = encode.PartialVersion, encode.PartialKind
	}
	version := ev.Revision.String()
	text := `{"kind":"` + name + `","apiVersion":"` + apiVersion + `","metadata":{"resourceVersion":"` + version + `"`
	if ev.Marks&store.InitialEnd != 0 && f.initialEnd {
		text += `,"annotations":{"` + initialEndAnnotation + `":"true"}`
	}
	object := []byte(text + "}}")
	if f.table == nil {
		return object, nil
	}
	row, err := f.table.EmptyRow(object)
	if err != nil {
		return nil, err
	}
	return f.single(version, row)
}

// send writes one frame. A client may resume from revision, unless that is zero.
func (f *frames) send(eventType string, object []byte, revision engine.Revision) {
	before, began := f.c.w.Bytes(), f.meter.now()
	switch {
	case f.messages != nil:
		f.messages.send(eventType, object)
	case f.c.form.Shape == accept.Events:
		f.serverSentEvent(eventType, object, revision)
	default:
		f.line(eventType, object)
	}
	f.meter.wrote(began)
	if size := int(f.c.w.Bytes() - before); size > 0 { // or the connection has failed
		f.sent++
		f.meter.sent(size)
	}
}

// small is the size up to which an object is copied into its frame, in bytes: for small objects
// one write to the connection costs less than three. Frames that are gathered are copied
// anyway.
const small = 1 << 10

// line writes a frame of JSON.
func (f *frames) line(eventType string, object []byte) {
	head := frameHeads[eventType]
	if len(object) > small || f.c.w.Gathers() {
		f.c.write(head)
		f.c.write(object)
		f.c.write(frameEnd)
		return
	}
	f.text = append(append(append(f.text[:0], head...), object...), frameEnd...)
	f.c.write(f.text)
}

// frameHeads are the beginnings of frames, by their types.
var frameHeads = func() map[string][]byte {
	heads := map[string][]byte{}
	for _, eventType := range []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"} {
		heads[eventType] = []byte(`{"type":"` + eventType + `","object":`)
	}
	return heads
}()

func (f *frames) serverSentEvent(eventType string, object []byte, revision engine.Revision) {
	head := make([]byte, 0, 64)
	if revision > 0 {
		head = appendID(head, revision)
	}
	head = append(append(append(head, "event: "...), eventType...), "\ndata: "...)
	f.c.write(head)
	f.c.write(bytes.TrimSuffix(object, newline))
	f.c.write(eventEnd)
}

// appendID appends the field that sets the Last-Event-ID with which the client resumes.
func appendID(to []byte, revision engine.Revision) []byte {
	return append(strconv.AppendUint(append(to, "id: "...), uint64(revision), 10), '\n')
}

var (
	frameEnd = []byte("}\n")
	eventEnd = []byte("\n\n")
)

// keepAlive keeps proxies from closing a quiet connection, unless messages do that by pings. A
// client of Server-Sent Events resumes from revision, without an event of its own.
func (f *frames) keepAlive(revision engine.Revision) {
	switch {
	case f.messages != nil:
	case f.c.form.Shape == accept.Events:
		f.c.write(append(appendID(make([]byte, 0, 32), revision), newline...))
	default:
		f.c.write(newline)
	}
}

// extend gives the client time to read what is written next. Messages have a limit of
// their own for each.
func (f *frames) extend() {
	if f.messages == nil {
		f.c.w.Extend()
	}
}

// flush sends what was written, counts it, and tells the metrics how long that took.
func (f *frames) flush() {
	f.c.counts.events.Add(f.sent)
	f.sent = 0
	if f.messages == nil {
		began := f.meter.now()
		// If the client is gone, the request's context ends.
		_ = http.NewResponseController(f.c.w).Flush()
		f.meter.wrote(began)
		f.c.w.RemoveDeadline()
	}
	f.meter.flushed()
}
