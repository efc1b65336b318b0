package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/store/snapshot"
	"github.com/watchmill/watchmill/usercode"
)

// A snapshot is the text that the package's documentation shows.
func TestWrite_WritesLinesOfJSON(t *testing.T) {
	schema := config().Schema()
	state, err := snapshot.Read(strings.NewReader(head+one+end), schema, snapshot.Options{})
	require.NoError(t, err)
	storage, err := memory.New(schema, memory.Options{FirstRevision: state.Revision, Objects: state.Objects})
	require.NoError(t, err)
	defer func() { require.NoError(t, storage.Close()) }()
	var text bytes.Buffer
	rev, err := snapshot.Write(t.Context(), &text, storage, schema, snapshot.Options{})
	require.NoError(t, err)
	require.Equal(t, state.Revision, rev)
	require.Equal(t, head+one+summed, text.String())
}

// tagged is a codec of JSON with a tag of its own.
type tagged struct{ codec.JSON }

func (t tagged) Encode(value any) (uint8, []byte, error) {
	_, data, err := t.JSON.Encode(value)
	return 3, data, err
}

func (t tagged) Decode(tag uint8, data []byte, into any) error {
	if tag != 3 {
		return &codec.TagError{Codec: "tagged", Tag: tag}
	}
	return t.JSON.Decode(0, data, into)
}

// pages is storage that notes how many objects are asked for at once.
type pages struct {
	backend.ListerWatcher
	limits []int
}

func (p *pages) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	p.limits = append(p.limits, opts.Limit)
	return p.ListerWatcher.List(ctx, opts)
}

// Whatever there is, it is read in pages, and each value keeps the tag of its codec. There are
// few, since some storage counts with each what remains.
func TestWrite_ReadsPages(t *testing.T) {
	cfg := config()
	e, err := engine.New(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for n := range 10_001 {
		_, err := e.Create(t.Context(), pod{Name: fmt.Sprint("p", n), N: n})
		require.NoError(t, err)
	}
	source, text := &pages{ListerWatcher: e.Backend()}, new(bytes.Buffer)
	_, err = snapshot.Write(t.Context(), text, source, cfg.Schema(), snapshot.Options{Codec: tagged{}})
	require.NoError(t, err)
	require.Equal(t, []int{10_000, 10_000}, source.limits)
	state, err := snapshot.Read(text, cfg.Schema(), snapshot.Options{Codec: tagged{}})
	require.NoError(t, err)
	require.Len(t, state.Objects, 10_001)
}

func TestWrite_FailsAsItsStorageAndItsWriterDo(t *testing.T) {
	errPipe := errors.New("broken pipe")
	schema := config().Schema()
	storage, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, storage.Close()) }()
	_, err = snapshot.Write(t.Context(), failing{errPipe}, storage, schema, snapshot.Options{})
	require.ErrorIs(t, err, errPipe)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = snapshot.Write(ctx, new(bytes.Buffer), storage, schema, snapshot.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// A disk that is full, or a client that has gone, is noticed before the rest has been read.
func TestWrite_ReadsNoMoreThanItsWriterTakes(t *testing.T) {
	errPipe := errors.New("broken pipe")
	cfg := config()
	e, err := engine.New(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for n := range 10_001 {
		_, err := e.Create(t.Context(), pod{Name: fmt.Sprint("p", n), N: n})
		require.NoError(t, err)
	}
	source := &pages{ListerWatcher: e.Backend()}
	_, err = snapshot.Write(t.Context(), failing{errPipe}, source, cfg.Schema(), snapshot.Options{})
	require.ErrorIs(t, err, errPipe)
	require.EqualError(t, err, "write snapshot: broken pipe")
	require.Len(t, source.limits, 1)
}

func TestOptions_AreChecked(t *testing.T) {
	schema, wrong := config().Schema(), snapshot.Options{MaxLine: -1}
	_, err := snapshot.Read(strings.NewReader(head+one+end), schema, wrong)
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.ErrorContains(t, err, "Options.MaxLine")
	storage, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, storage.Close()) }()
	_, err = snapshot.Write(t.Context(), new(bytes.Buffer), storage, schema, wrong)
	require.ErrorIs(t, err, usercode.ErrConfig)
}

// What Write writes, Read reads with the same options.
func TestWrite_RefusesLinesThatReadDoes(t *testing.T) {
	schema := config().Schema()
	state, err := snapshot.Read(strings.NewReader(head+one+end), schema, snapshot.Options{})
	require.NoError(t, err)
	storage, err := memory.New(schema, memory.Options{FirstRevision: state.Revision, Objects: state.Objects})
	require.NoError(t, err)
	defer func() { require.NoError(t, storage.Close()) }()
	text, opts := new(bytes.Buffer), snapshot.Options{MaxLine: len(one) - 1}
	_, err = snapshot.Write(t.Context(), text, storage, schema, opts)
	require.NoError(t, err)
	_, err = snapshot.Read(text, schema, opts)
	require.NoError(t, err)
	opts.MaxLine--
	_, err = snapshot.Write(t.Context(), text, storage, schema, opts)
	var large *backend.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, []int{len(one) - 1, len(one) - 2}, []int{large.Size, large.Limit})
	require.ErrorContains(t, err, fmt.Sprintf(`object %q`, state.Objects[0].Key))
}

// panicking is a codec that panics.
type panicking struct{}

func (panicking) Encode(any) (uint8, []byte, error) { panic("no such field") }

func (panicking) Decode(uint8, []byte, any) error { panic("no such field") }

// A panic of the codec, as of a value's MarshalJSON, does not end the program.
func TestWrite_ContainsAPanicOfTheCodec(t *testing.T) {
	e, err := engine.New(config())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	_, err = e.Create(t.Context(), pod{Name: "web"})
	require.NoError(t, err)
	_, err = snapshot.Write(t.Context(), new(bytes.Buffer), e.Backend(), config().Schema(), snapshot.Options{Codec: panicking{}})
	var panicked *usercode.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "Codec.Encode", panicked.Func)
	require.ErrorContains(t, err, `write snapshot: object "web": `)
}

// refusing is a codec that takes no value.
type refusing struct{ plainText }

var errRefused = errors.New("not this one")

func (refusing) Encode(any) (uint8, []byte, error) { return 0, []byte("{}"), errRefused }

// An object that cannot be written is not left out.
func TestWrite_FailsForWhatCannotBeWritten(t *testing.T) {
	schema := config().Schema()
	o := schema.New()
	o.Key, o.Created, o.Revision = "web", 1, 1
	for name, c := range map[string]struct {
		codec   codec.Codec
		written time.Time
		problem string
	}{
		"a value": {refusing{}, time.Time{}, `write snapshot: object "web": not this one`},
		"a time":  {nil, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), "year outside of range"},
	} {
		t.Run(name, func(t *testing.T) {
			o.Written = c.written
			storage, err := memory.New(schema, memory.Options{FirstRevision: 1, Objects: []*store.Object{o}})
			require.NoError(t, err)
			defer func() { require.NoError(t, storage.Close()) }()
			_, err = snapshot.Write(t.Context(), new(bytes.Buffer), storage, schema, snapshot.Options{Codec: c.codec})
			require.ErrorContains(t, err, c.problem)
		})
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A zone may be some seconds off the minute, which the text of a time cannot say.
func TestWrite_KeepsTimesOfAnyZone(t *testing.T) {
	schema := config().Schema()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", -(17*60+32)))
	o := schema.New()
	o.Key, o.Revision, o.Created, o.Written, o.Expires = "a", 5, 3, at, at.Add(time.Hour)
	source := only{list: &backend.List{Revision: 9, Items: []*store.Object{o}}}
	var text bytes.Buffer
	_, err := snapshot.Write(t.Context(), &text, source, schema, snapshot.Options{})
	require.NoError(t, err)
	state, err := snapshot.Read(&text, schema, snapshot.Options{})
	require.NoError(t, err)
	require.True(t, state.Objects[0].Written.Equal(o.Written))
	require.True(t, state.Objects[0].Expires.Equal(o.Expires), "%v is not %v", state.Objects[0].Expires, o.Expires)
}

// The identities of some storage are not revisions, such as those that package remote makes of uids.
func TestWrite_MakesIdentitiesRevisions(t *testing.T) {
	schema := config().Schema()
	o := schema.New()
	o.Key, o.Revision, o.Created = "a", 5, 7_171_145_790_747_133_593
	var text bytes.Buffer
	_, err := snapshot.Write(t.Context(), &text, only{list: &backend.List{Revision: 9, Items: []*store.Object{o}}}, schema, snapshot.Options{})
	require.NoError(t, err)
	state, err := snapshot.Read(&text, schema, snapshot.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 5, state.Objects[0].Created)
	storage, err := memory.New(schema, memory.Options{Objects: state.Objects})
	require.NoError(t, err)
	require.NoError(t, storage.Close())
}

// only is storage with one page.
type only struct {
	backend.ListerWatcher
	list *backend.List
}

func (s only) List(context.Context, backend.ListOptions) (*backend.List, error) { return s.list, nil }
