package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
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

// binary is a codec whose bytes are not JSON.
type binary struct{}

func (binary) Encode(value any) (uint8, []byte, error) {
	p := value.(*pod)
	return 7, fmt.Appendf(nil, "\xff%s %d", p.Name, p.N), nil
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
			for n := range 1200 {
				_, err := e.Create(ctx, pod{Name: fmt.Sprint("p", n), N: n % 10})
				require.NoError(t, err)
			}
			_, err = e.Put(ctx, pod{Name: "p7", N: 77})
			require.NoError(t, err)
			_, err = e.CreateWith(ctx, pod{Name: "leased"}, engine.CreateOptions{TTL: time.Hour})
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

// plainText is a codec whose bytes are the name, which may look like JSON.
type plainText struct{}

func (plainText) Encode(value any) (uint8, []byte, error) { return 0, []byte(value.(*pod).Name), nil }

func (plainText) Decode(_ uint8, data []byte, into any) error {
	into.(*pod).Name = string(data)
	return nil
}

// What a codec has written is read byte for byte, even if it is JSON in another form.
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

// Storage that begins behind such an object would run out of revisions, and begin at zero again.
func TestMemory_RefusesObjectsAtTheEndOfRevisions(t *testing.T) {
	schema := config().Schema()
	for _, rev := range []store.Revision{1<<62 + 1, math.MaxUint64} {
		o := schema.New()
		o.Key, o.Created, o.Revision = "a", 1, rev
		_, err := memory.New(schema, memory.Options{Objects: []*store.Object{o}})
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, "Options.Objects")
	}
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
	created, err := old.CreateWith(ctx, pod{Name: "web", N: 1}, engine.CreateOptions{TTL: time.Hour})
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
	cfg.Backend, cfg.FirstRevision = storage, 0 // which the storage has
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
