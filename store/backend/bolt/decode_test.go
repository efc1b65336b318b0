package bolt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// crowd writes n objects twice, by many writers, and then removes every tenth. It
// returns the revision between the two rounds.
func (f *fixture) crowd(n int) (between store.Revision) {
	f.Helper()
	for round := range 2 {
		between = f.revision()
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				for i := w; i < n; i += 64 {
					f.tryPut(fmt.Sprintf("ns-%d/item-%04d", i%3, i), fmt.Sprint("text ", round))
				}
			})
		}
		wg.Wait()
	}
	for i := 0; i < n; i += 10 {
		f.remove(fmt.Sprintf("ns-%d/item-%04d", i%3, i))
	}
	return between
}

// tryPut is put for goroutines other than the test's.
func (f *fixture) tryPut(key, text string) {
	prev, err := f.Get(f.ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if err == nil {
		_, err = f.Put(f.ctx, draft(key, text), prev, backend.PutOptions{})
	}
	if err != nil {
		f.Errorf("put %s: %v", key, err)
	}
}

// A state of many objects is read by several goroutines, in order all the same.
func TestDecode_ManyObjectsKeepTheirPlaces(t *testing.T) {
	f := newFixture(t)
	between := f.crowd(1500)
	newest := f.list(backend.ListOptions{})
	require.Len(t, newest, 1350)
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 40, ChunkSize: 10})()
	f.reopen(0)
	require.Equal(t, newest, f.list(backend.ListOptions{}))

	past := f.list(backend.ListOptions{Revision: between})
	require.Len(t, past, 1500)
	require.True(t, slices.IsSorted(past))
	for _, told := range past {
		require.Contains(t, told, "=text 0@")
	}
	require.Equal(t, past[500:1000], f.list(backend.ListOptions{Revision: between, Prefix: "ns-1"}))
}

// A state that cannot be decoded says which objects, the first by key.
func TestDecode_NamesTheFirstOfMany(t *testing.T) {
	f := newFixture(t)
	between := f.crowd(1500)
	f.close()
	f.cfg.Codec, f.cfg.OnUndecodable = forgetful{}, bolt.Keep
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 40, ChunkSize: 10})()
	f.open()
	_, err := f.List(f.ctx, backend.ListOptions{Revision: between})
	var named []string
	for _, u := range err.(interface{ Unwrap() []error }).Unwrap() {
		var unknown *backend.UndecodableError
		require.ErrorAs(t, u, &unknown)
		named = append(named, unknown.Key)
	}
	require.Len(t, named, 100)
	require.True(t, slices.IsSorted(named))
	require.Equal(t, "ns-0/item-0000", named[0])
}

// forgetful is a codec that cannot read what was written first.
type forgetful struct{ codec.JSON }

func (forgetful) Decode(_ uint8, data []byte, into any) error {
	if strings.Contains(string(data), "text 0") {
		return errors.New("forgotten")
	}
	return json.Unmarshal(data, into)
}

// A codec that ends its goroutine, as t.FailNow does, is an error of the call that
// decodes, which neither waits for that goroutine nor leaves its objects out.
func TestDecode_CodecThatEndsItsGoroutineIsAnError(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // with one, the caller's decodes
	f := newFixture(t)
	between := f.crowd(1500)
	f.close()
	f.cfg.Codec = fatal{"text 1"}
	_, err := f.tryOpen()
	require.ErrorIs(t, err, usercode.ErrGoexit, "the newest state")
	f.cfg.Codec = fatal{"text 0"}
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 40, ChunkSize: 10})()
	f.open()
	_, err = f.List(f.ctx, backend.ListOptions{Revision: between})
	require.ErrorIs(t, err, usercode.ErrGoexit, "a past state")
	require.Len(t, f.list(backend.ListOptions{}), 1350)
}

// fatal is a codec that ends the goroutine that decodes a text.
type fatal struct{ text string }

func (fatal) Encode(value any) (uint8, []byte, error) { return codec.JSON{}.Encode(value) }

func (c fatal) Decode(tag uint8, data []byte, into any) error {
	if strings.Contains(string(data), c.text) {
		runtime.Goexit()
	}
	return codec.JSON{}.Decode(tag, data, into)
}
