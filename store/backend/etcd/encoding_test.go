package etcd_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/codec"
)

// stored returns the bytes under key as they are in etcd.
func (f *fixture) stored(key string) []byte {
	f.Helper()
	resp, err := f.raw.Get(f.ctx, f.place(key))
	require.NoError(f, err)
	require.Len(f, resp.Kvs, 1)
	return resp.Kvs[0].Value
}

func TestEncoding_IsTheCodecsOwnBytes(t *testing.T) {
	f := newFixture(t)
	f.create("a", "1")
	require.JSONEq(t, `{"Key":"a","Text":"1"}`, string(f.stored("a")))
}

func TestEncoding_OfATTLHasAHeader(t *testing.T) {
	f := newFixture(t)
	o, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{TTL: time.Hour})
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(f.stored("a"), []byte{0, 'W', 1}))
	read, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	require.WithinDuration(t, o.Written, read.Written, 0)
	require.WithinDuration(t, o.Expires, read.Expires, 0)
}

func TestEncoding_SealedIsNotReadableAndBoundToItsPlace(t *testing.T) {
	sealer, err := codec.NewAESGCM(codec.Key{ID: "1", Secret: bytes.Repeat([]byte{7}, codec.KeySize)})
	require.NoError(t, err)
	f := newFixture(t, func(c *etcd.Config) { c.Sealer = sealer })
	f.create("a", "secret")
	require.NotContains(t, string(f.stored("a")), "secret")
	o, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "secret", textOf(o))

	_, err = f.raw.Put(f.ctx, f.place("b"), string(f.stored("a")))
	require.NoError(t, err)
	_, err = f.Get(f.ctx, "b")
	require.ErrorIs(t, err, backend.ErrUndecodable)
	require.ErrorIs(t, err, codec.ErrNotAuthentic)

	f.cfg.Sealer = nil
	_, err = f.open().Get(f.ctx, "a")
	require.ErrorIs(t, err, backend.ErrUndecodable)
	require.ErrorContains(t, err, "Config.Sealer is nil")
}

// A codec may need its tag to read what it has written, as Gzip does.
func TestEncoding_HasTheTagOfTheCodec(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.Codec = codec.Gzip{} })
	long := strings.Repeat("x", 100*codec.DefaultMinSize)
	w := f.watch(f.revision(), "")
	for _, text := range []string{long, "short"} {
		f.create(text[:1], text)
		require.Less(t, len(f.stored(text[:1])), codec.DefaultMinSize)
		o, err := f.Get(f.ctx, text[:1])
		require.NoError(t, err)
		require.Equal(t, text, textOf(o))
	}
	require.Equal(t, []string{"ADDED x=" + long + " was -", "ADDED s=short was -"}, w.read(f.revision()))
}

// A value of another program has no time in it.
func TestEncoding_OfAnotherProgramHasTheTimeAtWhichItCame(t *testing.T) {
	f := newFixture(t)
	w := f.watch(f.revision(), "")
	before := time.Now()
	f.foreign("a", "1")
	batch, err := w.Next(1)
	for ; err == nil && len(batch.Events) == 0; batch, err = w.Next(1) {
		w.await()
	}
	require.NoError(t, err)
	o, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	for _, o := range []*store.Object{o, batch.Events[0].Object} {
		require.WithinRange(t, o.Written, before, time.Now())
		require.Zero(t, o.Expires)
	}
}

// rawCodec is a codec whose bytes begin like a header.
type rawCodec struct{ codec.JSON }

func (c rawCodec) Encode(v any) (uint8, []byte, error) {
	tag, data, err := c.JSON.Encode(v)
	return tag, append([]byte("\x00W"), data...), err
}

func (c rawCodec) Decode(tag uint8, data []byte, into any) error {
	return c.JSON.Decode(tag, data[2:], into)
}

func TestEncoding_ThatBeginsLikeAHeaderIsNotTakenForOne(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.Codec = rawCodec{} })
	f.create("a", "1")
	o, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "1", textOf(o))
}

func TestPut_TooLargeIsRefusedBeforeItIsSent(t *testing.T) {
	f := newFixture(t)
	before := f.revision()
	_, err := f.Put(f.ctx, draft("a", string(bytes.Repeat([]byte("x"), 2<<20))), nil, backend.PutOptions{})
	var large *backend.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Greater(t, large.Size, large.Limit)
	require.Equal(t, before, f.revision())
}

// junk writes a value of which only a part can be decoded.
func (f *fixture) junk(key string) store.Revision {
	f.Helper()
	resp, err := f.raw.Put(f.ctx, f.place(key), `{"Text":"half","Key":1}`)
	require.NoError(f, err)
	return store.Revision(resp.Header.Revision)
}

func TestUndecodable_FailsReadsAndEndsWatchesBehindWhatCameBefore(t *testing.T) {
	f := newFixture(t)
	w := f.watch(f.revision(), "")
	f.create("a", "1")
	at := f.junk("b")
	f.create("c", "1")
	events, err := w.end()
	require.Equal(t, []string{"ADDED a=1 was -"}, events)
	var unknown *backend.UndecodableError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "b", unknown.Key)
	require.Equal(t, at, unknown.Revision)

	_, err = f.Get(f.ctx, "b")
	require.ErrorIs(t, err, backend.ErrUndecodable)
	_, err = f.List(f.ctx, backend.ListOptions{})
	require.ErrorIs(t, err, backend.ErrUndecodable)
	_, err = f.Put(f.ctx, draft("b", "1"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrExists)
	require.ErrorIs(t, err, backend.ErrUndecodable)

	bad := draft("b", "")
	bad.Revision = at
	fixed, err := f.Put(f.ctx, draft("b", "1"), bad, backend.PutOptions{})
	require.NoError(t, err, "by its revision it can be overwritten")
	require.Equal(t, at, fixed.Created)
	bad.Key, bad.Revision = "d", f.junk("d")
	gone, err := f.Remove(f.ctx, bad)
	require.NoError(t, err, "and removed")
	require.Equal(t, bad.Revision, gone.Created)
}

func TestUndecodable_IsPassedOnWithoutItsValueIfSo(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.OnUndecodable = etcd.Keep })
	w := f.watch(f.revision(), "")
	f.junk("b")
	f.create("c", "1")
	f.foreign("b", "2")
	require.Equal(t, []string{"ADDED b= was -", "ADDED c=1 was -", "MODIFIED b=2 was "}, w.read(f.revision()))
}

// What another program writes below the prefix under names that no object can have
// is not an object, and is told of.
func TestForeignKeys_ThatAreNoObjectsAreLeftOut(t *testing.T) {
	var mu sync.Mutex
	reported := map[string]bool{}
	f := newFixture(t, func(c *etcd.Config) {
		c.OnError = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reported[err.Error()] = true
		}
	})
	w := f.watch(f.revision(), "")
	for _, bad := range []string{"a//b", "", "..", "\xff"} {
		_, err := f.raw.Put(f.ctx, f.place(bad), "{}")
		require.NoError(t, err)
	}
	last := f.create("z", "1")
	require.Equal(t, []string{"ADDED z=1 was -"}, w.read(last.Revision))
	l, err := f.List(f.ctx, backend.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	require.Equal(t, "z", l.Items[0].Key)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, reported, 4)
}

// A list of more objects than fit into one request is of one revision.
func TestList_OfManyIsOfOneRevision(t *testing.T) {
	f := newFixture(t)
	var values []string
	for i := range 1200 {
		values = append(values, fmt.Sprintf("k/%04d", i))
	}
	for _, key := range values {
		f.foreign(key, "x")
	}
	l, err := f.List(f.ctx, backend.ListOptions{Prefix: "k"})
	require.NoError(t, err)
	require.Len(t, l.Items, len(values))
	require.Equal(t, f.revision(), l.Revision)
	l, err = f.List(f.ctx, backend.ListOptions{Prefix: "k", Limit: 1100})
	require.NoError(t, err)
	require.Len(t, l.Items, 1100)
	require.Equal(t, 100, l.Remaining)
}
