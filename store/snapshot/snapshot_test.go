package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/snapshot"
	"github.com/watchmill/watchmill/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pod struct {
	Name string
	N    int
}

func config() engine.Config[pod] {
	return engine.Config[pod]{
		Key:    func(p pod) string { return p.Name },
		Fields: engine.Fields[pod]{"n": func(p pod) string { return fmt.Sprint(p.N) }},
		Index:  []string{"n"},
	}
}

// binary is a codec whose bytes are no JSON.
type binary struct{}

func (binary) Encode(value any) (uint8, []byte, error) {
	p := value.(*pod)
	return 7, []byte(fmt.Sprintf("\xff%s %d", p.Name, p.N)), nil
}

func (binary) Decode(tag uint8, data []byte, into any) error {
	if tag != 7 || len(data) == 0 {
		return errors.New("not mine")
	}
	p := into.(*pod)
	_, err := fmt.Sscanf(string(data[1:]), "%s %d", &p.Name, &p.N)
	return err
}

// restored returns an engine over new storage with the objects of a snapshot.
func restored(t *testing.T, clock engine.Clock, text string, opts snapshot.Options) *engine.Engine[pod] {
	t.Helper()
	cfg := config()
	state, err := snapshot.Read(strings.NewReader(text), cfg.Schema(), opts)
	require.NoError(t, err)
	storage, err := memory.New(cfg.Schema(), memory.Options{Clock: clock, Objects: state.Objects})
	require.NoError(t, err)
	cfg.Backend = storage
	host, err := engine.NewHost(engine.HostConfig{Clock: clock})
	require.NoError(t, err)
	cfg.Host = host
	e, err := engine.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		require.NoError(t, storage.Close())
		require.NoError(t, host.Close())
	})
	return e
}

// Objects come back with revision, identity, time and expiry; indexes work; what was to
// expire expires; new revisions lie beyond all old ones, and resume points of the old
// storage are refused.
func TestSnapshot_RoundTrip(t *testing.T) {
	for name, opts := range map[string]snapshot.Options{"JSON": {}, "bytes": {Codec: binary{}}} {
		t.Run(name, func(t *testing.T) {
			clock := engine.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			host, err := engine.NewHost(engine.HostConfig{Clock: clock})
			require.NoError(t, err)
			cfg := config()
			cfg.Host = host
			e, err := engine.New(cfg)
			require.NoError(t, err)
			ctx := t.Context()
			for n := range 1200 { // several pages
				_, err := e.Create(ctx, pod{Name: fmt.Sprint("p", n), N: n % 10})
				require.NoError(t, err)
			}
			_, err = e.Put(ctx, pod{Name: "p7", N: 77})
			require.NoError(t, err)
			_, err = e.CreateWithTTL(ctx, pod{Name: "leased"}, time.Hour)
			require.NoError(t, err)
			_, err = e.Delete(ctx, "p9", engine.DeleteOptions{})
			require.NoError(t, err)
			before, err := e.List(ctx, engine.ListOptions{})
			require.NoError(t, err)
			var text bytes.Buffer
			rev, err := snapshot.Write(ctx, &text, e.Backend(), cfg.Schema(), opts)
			require.NoError(t, err)
			require.Equal(t, before.Revision, rev)
			require.NoError(t, e.Close())
			require.NoError(t, host.Close())

			clock.Advance(time.Minute)
			e = restored(t, clock, text.String(), opts)
			after, err := e.List(ctx, engine.ListOptions{})
			require.NoError(t, err)
			require.Greater(t, after.Revision, rev)
			require.Equal(t, before.Items, after.Items)
			require.Len(t, after.Items, 1200)
			found, err := e.ByIndex(ctx, "n", "77")
			require.NoError(t, err)
			require.Equal(t, "p7", found[0].Key)
			_, err = e.Watch(ctx, engine.WatchOptions{From: rev})
			require.ErrorIs(t, err, engine.ErrExpired)
			w, err := e.Watch(ctx, engine.WatchOptions{From: after.Revision})
			require.NoError(t, err)
			clock.Advance(time.Hour)
			events, err := w.Next(ctx)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("DELETED leased@%d", after.Revision+1), events[0].String())
		})
	}
}

const (
	head = `{"snapshot":1,"revision":9}` + "\n"
	one  = `{"key":"a","revision":5,"created":3,"written":"2026-01-01T00:00:00Z","value":{"Name":"a","N":1}}` + "\n"
	end  = `{"end":1}` + "\n"
)

// plainText is a codec whose bytes are the name, which may look like JSON.
type plainText struct{}

func (plainText) Encode(value any) (uint8, []byte, error) { return 0, []byte(value.(*pod).Name), nil }

func (plainText) Decode(_ uint8, data []byte, into any) error {
	into.(*pod).Name = string(data)
	return nil
}

// What a codec has written is read byte for byte, also if it is JSON in another form.
func TestSnapshot_KeepsTheBytesOfTheCodec(t *testing.T) {
	cfg := config()
	cfg.FirstRevision = 1
	e, err := engine.New(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	names := []string{`"a<b"`, `12`, `[1, 2]`, `plain`, `{"a":1}`}
	for _, name := range names {
		_, err := e.Create(t.Context(), pod{Name: name})
		require.NoError(t, err)
	}
	var out bytes.Buffer
	_, err = snapshot.Write(t.Context(), &out, e.Backend(), cfg.Schema(), snapshot.Options{Codec: plainText{}})
	require.NoError(t, err)
	state, err := snapshot.Read(&out, cfg.Schema(), snapshot.Options{Codec: plainText{}})
	require.NoError(t, err)
	for _, o := range state.Objects {
		require.Equal(t, o.Key, store.As[engine.Object[pod]](o).Value.Name)
	}
	require.Len(t, state.Objects, len(names))
}

// What is not a whole snapshot is refused, with the line and the field.
func TestRead_SaysWhatIsWrongAndWhere(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		line  int
		field string
	}{
		"empty":               {"", 1, ""},
		"no snapshot":         {"hello\n", 1, ""},
		"later version":       {`{"snapshot":2,"revision":9}` + "\n", 1, "snapshot"},
		"cut off":             {head + one, 3, ""},
		"cut off in a line":   {head + one[:20], 2, ""},
		"unknown field":       {head + `{"key":"a","colour":"red"}` + "\n", 2, ""},
		"two objects a line":  {head + strings.TrimSpace(one) + one, 2, ""},
		"no key":              {head + `{"revision":5}` + "\n", 2, "key"},
		"key twice":           {head + one + one + end, 3, "key"},
		"no revision":         {head + `{"key":"a","created":1,"value":{}}` + "\n", 2, "revision"},
		"later than snapshot": {head + `{"key":"a","revision":10,"created":1,"value":{}}` + "\n", 2, "revision"},
		"created later":       {head + `{"key":"a","revision":5,"created":6,"value":{}}` + "\n", 2, "created"},
		"no value":            {head + `{"key":"a","revision":5,"created":5}` + "\n", 2, "value"},
		"other value":         {head + `{"key":"a","revision":5,"created":5,"value":[1]}` + "\n", 2, "value"},
		"other codec":         {head + `{"key":"a","revision":5,"created":5,"tag":3,"bytes":"AAAA"}` + "\n", 2, "value"},
		"both":                {head + `{"key":"a","revision":5,"created":5,"value":{},"bytes":"AAAA"}` + "\n", 2, "value"},
		"wrong number":        {head + one + `{"end":2}` + "\n", 3, "end"},
		"more after the end":  {head + one + end + one, 4, ""},
		"long line":           {head + strings.Repeat(" ", 1<<12) + "\n", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Read(strings.NewReader(test.text), config().Schema(), snapshot.Options{MaxLine: 1 << 12})
			require.ErrorIs(t, err, snapshot.ErrInvalid)
			var wrong *snapshot.ReadError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, test.line, wrong.Line)
			require.Equal(t, test.field, wrong.Field)
			require.ErrorContains(t, err, strings.TrimSpace(fmt.Sprintf("invalid snapshot: line %d: %s", test.line, test.field)))
			if wrong.Err != nil {
				require.ErrorContains(t, err, wrong.Problem+": "+wrong.Err.Error())
			}
		})
	}
}

func TestSnapshot_ErrorsOfReaderAndWriter(t *testing.T) {
	errPipe := errors.New("broken pipe")
	schema := config().Schema()
	_, err := snapshot.Read(iotest.ErrReader(errPipe), schema, snapshot.Options{})
	require.ErrorIs(t, err, errPipe)
	storage, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, storage.Close()) }()
	_, err = snapshot.Write(t.Context(), iotest.TruncateWriter(failing{errPipe}, 1), storage, schema, snapshot.Options{})
	require.ErrorIs(t, err, errPipe)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = snapshot.Write(ctx, new(bytes.Buffer), storage, schema, snapshot.Options{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = snapshot.Read(strings.NewReader(""), schema, snapshot.Options{MaxLine: -1})
	require.ErrorIs(t, err, usercode.ErrConfig)
}

// panicking is a codec that panics.
type panicking struct{ plainText }

func (panicking) Encode(any) (uint8, []byte, error) { panic("no such field") }

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

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Storage refuses a state that cannot be.
func TestMemory_RefusesObjectsThatCannotBe(t *testing.T) {
	schema := config().Schema()
	object := func(key string, created, rev store.Revision) *store.Object {
		o := schema.New()
		o.Key, o.Created, o.Revision = key, created, rev
		return o
	}
	for name, objects := range map[string][]*store.Object{
		"key":       {object("", 1, 1)},
		"created":   {object("a", 3, 2)},
		"uncreated": {object("a", 0, 2)},
		"later":     {object("a", 1, 101)},
		"twice":     {object("a", 1, 1), object("a", 2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := memory.New(schema, memory.Options{FirstRevision: 100, Objects: objects})
			require.ErrorIs(t, err, usercode.ErrConfig)
			require.ErrorContains(t, err, "Options.Objects")
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(head + one + end)
	f.Add(head + end)
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		state, err := snapshot.Read(strings.NewReader(text), config().Schema(), snapshot.Options{MaxLine: 1 << 16})
		if err != nil {
			require.ErrorIs(t, err, snapshot.ErrInvalid)
			return
		}
		_, err = memory.New(config().Schema(), memory.Options{FirstRevision: max(state.Revision, 1), Objects: state.Objects})
		if err != nil {
			require.ErrorIs(t, err, usercode.ErrConfig)
		}
	})
}

func Example() {
	ctx := context.Background()
	cfg := config()
	cfg.FirstRevision = 1
	old, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	created, err := old.CreateWithTTL(ctx, pod{Name: "web", N: 1}, time.Hour)
	var file bytes.Buffer
	if err == nil {
		_, err = snapshot.Write(ctx, &file, old.Backend(), cfg.Schema(), snapshot.Options{})
	}
	if err = errors.Join(err, old.Close()); err != nil {
		fmt.Println(err)
		return
	}

	state, err := snapshot.Read(&file, cfg.Schema(), snapshot.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	storage, err := memory.New(cfg.Schema(), memory.Options{Objects: state.Objects})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer storage.Close()
	cfg.Backend = storage
	pods, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	web, err := pods.Get(ctx, "web", engine.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(web.Value, "at revision", web.Revision)
	fmt.Println("the same object:", web.Created == created.Created, "that expires as before:", web.Expires.Equal(created.Expires))
	// Output:
	// {web 1} at revision 2
	// the same object: true that expires as before: true
}
