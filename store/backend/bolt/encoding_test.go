package bolt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/usercode"
)

func sealer(t testing.TB, ids ...byte) codec.Sealer {
	t.Helper()
	var keys []codec.Key
	for _, id := range ids {
		keys = append(keys, codec.Key{ID: string(id), Secret: bytes.Repeat([]byte{id}, codec.KeySize)})
	}
	s, err := codec.NewAESGCM(keys...)
	require.NoError(t, err)
	return s
}

func (f *fixture) image() string {
	f.Helper()
	image, err := os.ReadFile(f.path)
	require.NoError(f, err)
	return string(image)
}

func TestSealer_LeavesNoValueReadable(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Sealer = sealer(t, 'a') })
	f.put("the-key", "the secret value")
	f.emit("the-key", "the secret emission")
	f.remove("the-key")
	f.put("the-key", "the secret value again")
	require.Contains(t, f.image(), "the-key")
	require.NotContains(t, f.image(), "the secret")
	before := f.list(backend.ListOptions{})
	f.reopen(0)
	require.Equal(t, before, f.list(backend.ListOptions{}))
	require.Len(t, f.watch(1, "").read(f.revision(), 10), 4)
}

// versioned is a codec with two encodings: JSON, and with tag 1 JSON behind a prefix.
type versioned struct{ write uint8 }

func (v versioned) Encode(value any) (uint8, []byte, error) {
	data, err := json.Marshal(value)
	if v.write == 1 {
		data = append([]byte("v2:"), data...)
	}
	return v.write, data, err
}

func (v versioned) Decode(tag uint8, data []byte, into any) error {
	switch tag {
	case 0:
		return json.Unmarshal(data, into)
	case 1:
		return json.Unmarshal(data[3:], into)
	}
	return &codec.TagError{Codec: "versioned", Tag: tag}
}

// untidy is a codec that overwrites the bytes that it decodes, and those behind them.
type untidy struct{ codec.JSON }

func (u untidy) Decode(tag uint8, data []byte, into any) error {
	err := u.JSON.Decode(tag, data, into)
	clear(data)
	_ = append(data, "clutter"...)
	return err
}

// The bytes that a codec gets are its own, and neither the file's nor another value's.
func TestCodec_MayWriteToWhatItDecodes(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = untidy{} })
	for i := range 20 {
		f.put(fmt.Sprint("k", i%7), fmt.Sprint(i))
		f.emit("k", fmt.Sprint("passed by ", i))
	}
	last := f.revision()
	newest, middle := f.list(backend.ListOptions{}), f.list(backend.ListOptions{Revision: last / 2})
	events := f.watch(1, "").read(last, 10)
	for range 2 {
		f.reopen(0)
		require.Equal(t, newest, f.list(backend.ListOptions{}))
		require.Equal(t, events, f.watch(1, "").read(last, 10))
		f.emptyWindow()
		require.Equal(t, middle, f.list(backend.ListOptions{Revision: last / 2}))
		require.Equal(t, events, f.watch(1, "").read(last, 10))
		_, err := f.Rewrite(f.ctx)
		require.NoError(t, err)
		f.check()
	}
}

func TestCodec_ReadsWhatAnOlderOneWrote(t *testing.T) {
	f := newFixture(t)
	f.put("a", "old")
	f.close()
	f.cfg.Codec = versioned{write: 1}
	f.open()
	f.put("b", "new")
	f.reopen(0)
	require.Len(t, f.watch(1, "").read(3, 10), 2)
	n, err := f.Rewrite(f.ctx)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	f.close()
	_, err = bolt.Dump(f.path, func(r bolt.Record) error {
		require.Equal(t, uint8(1), r.Tag)
		return nil
	})
	require.NoError(t, err)

	f.cfg.Codec = nil
	_, err = f.tryOpen()
	require.ErrorIs(t, err, backend.ErrUndecodable)
	require.ErrorIs(t, err, codec.ErrTag)
	var u *backend.UndecodableError
	require.ErrorAs(t, err, &u)
	require.Equal(t, backend.UndecodableError{Type: "items", Key: "a", Revision: 2, Tag: 1, Cause: u.Cause}, *u)
	require.ErrorContains(t, err, "2 objects")
	f.cfg.Codec = versioned{}
	f.open()
}

// tryOpen opens the file where New may fail, and closes it.
func (f *fixture) tryOpen() (*bolt.Backend, error) {
	f.Helper()
	file, err := bolt.Open(f.path, f.opts)
	require.NoError(f, err)
	b, err := bolt.New(file, "items", f.cfg)
	require.NoError(f, file.Close())
	return b, err
}

// late is a codec that decodes a value and only then fails.
type late struct {
	codec.JSON
	text string
}

func (l late) Decode(tag uint8, data []byte, into any) error {
	err := l.JSON.Decode(tag, data, into)
	if err == nil && strings.Contains(string(data), l.text) {
		return fmt.Errorf("%q is not legible", l.text)
	}
	return err
}

// Readers do not get a value that was decoded only in part, and a list of the past fails as without any of it.
func TestKeep_GivesNothingOfAValueThatFailsLate(t *testing.T) {
	f := newFixture(t)
	f.put("a", "bad")
	f.put("b", "fine")
	f.close()
	f.cfg.Codec, f.cfg.OnUndecodable = late{text: "bad"}, bolt.Keep
	f.open()
	f.emptyWindow()
	_, err := f.List(f.ctx, backend.ListOptions{Revision: 2})
	require.ErrorIs(t, err, backend.ErrUndecodable)
	events := f.watch(1, "").events(3, 10)
	require.Len(t, events, 2)
	require.Empty(t, textOf(events[0].Object))
	gone, err := f.Remove(f.ctx, &store.Object{Key: "a", Revision: 2})
	require.NoError(t, err)
	require.Empty(t, textOf(gone))
}

// Objects whose values are lost stay in their places until they are overwritten
// or removed.
func TestKeep_KeepsWhatCannotBeDecoded(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Sealer = sealer(t, 'a') })
	f.put("dir/lost", "x")
	lost := f.put("dir/overwritten", "y")
	f.close()
	f.cfg.Sealer = sealer(t, 'b')
	_, err := f.tryOpen()
	require.ErrorIs(t, err, codec.ErrUnknownKey)
	f.cfg.OnUndecodable = bolt.Keep
	f.open()
	f.put("fine", "z")
	_, err = f.Get(f.ctx, "dir/lost")
	var u *backend.UndecodableError
	require.ErrorAs(t, err, &u)
	require.Equal(t, store.Revision(2), u.Revision)
	_, err = f.List(f.ctx, backend.ListOptions{})
	require.ErrorIs(t, err, backend.ErrUndecodable)
	require.ErrorContains(t, err, "dir/lost")
	require.ErrorContains(t, err, "dir/overwritten")
	require.Len(t, f.list(backend.ListOptions{Prefix: "fine"}), 1)
	var conflict *backend.ConflictError
	_, err = f.Put(f.ctx, draft("dir/lost", "new"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrExists)
	require.NotErrorAs(t, err, &conflict, "a ConflictError has the object, which cannot be decoded")
	_, err = f.Put(f.ctx, draft("dir/lost", "new"), &store.Object{Key: "dir/lost", Revision: 1}, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrConflict)
	require.NotErrorAs(t, err, &conflict)

	w := f.watch(f.revision(), "")
	gone, err := f.Remove(f.ctx, &store.Object{Key: "dir/lost", Revision: 2})
	require.NoError(t, err)
	require.Equal(t, store.Revision(5), gone.Revision)
	over, err := f.Put(f.ctx, draft("dir/overwritten", "new"), lost, backend.PutOptions{})
	require.NoError(t, err)
	require.Equal(t, lost.Created, over.Created)
	require.Len(t, f.list(backend.ListOptions{}), 2)
	events := w.read(6, 10)
	require.Contains(t, events[0], "DELETED dir/lost@5")
	require.Contains(t, events[1], "MODIFIED dir/overwritten@6")
	for revision := store.Revision(4); revision < 6; revision++ { // when one of them or both were there
		_, err = f.List(f.ctx, backend.ListOptions{Revision: revision})
		require.ErrorIs(t, err, backend.ErrUndecodable, "at %d", revision)
	}

	f.reopen(0)
	require.Len(t, f.list(backend.ListOptions{}), 2)
	require.Len(t, f.watch(1, "").read(6, 10), 5, "history has zero values in their place")
	_, err = f.List(f.ctx, backend.ListOptions{Revision: 3})
	require.ErrorIs(t, err, backend.ErrUndecodable)
	f.close()
	f.cfg.OnUndecodable = bolt.Fail
	f.open()
	require.ErrorIs(t, f.watch(1, "").wait(), backend.ErrUndecodable)
	require.Len(t, f.list(backend.ListOptions{}), 2)
}

// A panic of the user's code is an error of that call.
func TestCodec_MayPanic(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = panicking{} })
	_, err := f.Put(f.ctx, draft("a", "panic"), nil, backend.PutOptions{})
	var p *usercode.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, "Codec.Encode", p.Func)
	require.Equal(t, "a", p.Key)
	o := f.put("a", "later")
	_, err = f.Put(f.ctx, draft("a", "error"), o, backend.PutOptions{})
	require.ErrorIs(t, err, errBroken)
	f.reopen(0)
	f.close()
	f.cfg.Codec = panicking{decode: true}
	_, err = f.tryOpen()
	require.ErrorIs(t, err, usercode.ErrPanic)
	f.cfg.Codec = nil
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

var errBroken = errors.New("broken")

type panicking struct{ decode bool }

func (p panicking) Encode(value any) (uint8, []byte, error) {
	switch value.(*backendtest.Value).Text {
	case "panic":
		panic("encode")
	case "error":
		return 0, nil, errBroken
	}
	return codec.JSON{}.Encode(value)
}

func (p panicking) Decode(tag uint8, data []byte, into any) error {
	if p.decode {
		panic("decode")
	}
	return codec.JSON{}.Decode(tag, data, into)
}

func TestPut_RefusesWhatIsTooLarge(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = huge{} })
	_, err := f.Put(f.ctx, draft("a", "x"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, backend.ErrTooLarge)
	require.Equal(t, store.Revision(1), f.revision())
}

// huge encodes every value as 64 MiB.
type huge struct{ codec.JSON }

func (huge) Encode(any) (uint8, []byte, error) { return 0, make([]byte, 64<<20), nil }

func TestNew_TellsHowFarItHasGot(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.emitMany(12_000, "x")
	var told [][2]int
	f.cfg.OnProgress = func(done, total int) { told = append(told, [2]int{done, total}) }
	f.reopen(0)
	require.Len(t, told, 1)
	require.Equal(t, 10_000, told[0][0])
	require.GreaterOrEqual(t, told[0][1], 12_001, "the estimate covers all that was written")
}

// The journal takes a panic while it reads for damage of the file: one in the user's code
// must not come so far.
func TestNew_ContainsAPanicOfOnProgress(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.emitMany(25_000, "x")
	var failures []error
	f.opts.OnError = func(err error) { failures = append(failures, err) }
	told := 0
	f.cfg.OnProgress = func(int, int) { told++; panic("no terminal") }
	f.reopen(0)
	require.Equal(t, 1, told, "it is not called again")
	require.Len(t, failures, 1)
	var panicked *usercode.PanicError
	require.ErrorAs(t, failures[0], &panicked)
	require.Equal(t, "Config.OnProgress", panicked.Func)
	require.Equal(t, "no terminal", panicked.Value)
	require.Equal(t, "2", textOf(f.put("a", "2")))
}

// A panic in the schema must not reach the journal, either.
func TestNew_ContainsAPanicOfTheSchema(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.close()
	cfg := f.cfg
	cfg.Schema.New = func() *store.Object { panic("no object") }
	file, err := bolt.Open(f.path, f.opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	_, err = bolt.New(file, "items", cfg)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.NotErrorIs(t, err, backend.ErrCorrupt)
	items, err := bolt.New(file, "items", f.cfg)
	require.NoError(t, err, "the file is as good as before")
	o, err := items.Get(f.ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "1", textOf(o))
}

// emitMany emits n times, by many goroutines, since that is faster.
func (f *fixture) emitMany(n int, text string) {
	f.Helper()
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				if _, err := f.Emit(f.ctx, draft(fmt.Sprint("k", i%7), text)); err != nil {
					f.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
