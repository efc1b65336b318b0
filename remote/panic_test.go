package remote_test

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// panicking is a body that panics when it is read.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("cannot read") }

// The transport is the user's. Its panic is a failure to reach the server, and the watch
// goes on from where it was.
func TestWatch_GoesOnAfterAPanicOfTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []error
		events := watchOf(t, func(c *remote.Config) { c.OnError = func(err error) { told = append(told, err) } },
			sends(event("ADDED", "a", 6)),
			func(*http.Request) (*http.Response, error) { panic("cannot send") },
			func(*http.Request) (*http.Response, error) {
				return reply(http.StatusOK, io.MultiReader(strings.NewReader(event("MODIFIED", "a", 7)), panicking{}))
			},
			sends(event("MODIFIED", "a", 8)+gone),
		)
		require.Len(t, events, 3)
		panics := 0
		for _, err := range told {
			if errors.Is(err, usercode.ErrPanic) {
				panics++
			}
		}
		require.Equal(t, 2, panics, "of %v", told)
	})
}

// fragile is a kind whose values cannot be decoded.
type fragile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              fragileSpec `json:"spec"`
}

type fragileSpec struct{}

func (*fragileSpec) UnmarshalJSON([]byte) error { panic("cannot decode") }

// A value whose decoding panics ends the watch, as other frames do that are not events of
// the kind: the server would send it again.
func TestWatch_EndsAtAPanicOfTheDecoding(t *testing.T) {
	format, err := registry.FormatOf(registry.Config[fragile]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
	require.NoError(t, err)
	b, err := remote.New(format, remote.Config{URL: frames(t, "200 "+event("ADDED", "a", 6)).URL})
	require.NoError(t, err)
	_, err = readAll(t, b, 1)
	var frame *remote.FrameError
	require.ErrorAs(t, err, &frame)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.NoError(t, b.Close())
}

// exiting is a body that ends the goroutine that reads it.
type exiting struct{}

func (exiting) Read([]byte) (int, error) {
	runtime.Goexit()
	return 0, nil
}

// A function of the user's that ends the goroutine of a watch, as t.FailNow does, ends the watch. It does not
// leave one that has no more events.
func TestWatch_EndsWithItsGoroutine(t *testing.T) {
	for name, answers := range map[string][]pretended{
		"the transport": {
			sends(event("ADDED", "a", 6)),
			func(*http.Request) (*http.Response, error) {
				runtime.Goexit()
				return nil, nil
			},
		},
		"a body": {func(*http.Request) (*http.Response, error) {
			return reply(http.StatusOK, io.MultiReader(strings.NewReader(event("ADDED", "a", 6)), exiting{}))
		}},
		"OnError": {
			sends(event("ADDED", "a", 6)),
			func(*http.Request) (*http.Response, error) { return nil, errors.New("no network") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				var open atomic.Int64
				b := pretend(t, func(r *http.Request) (*http.Response, error) {
					n++
					return tracked(&open, answers[n-1])(r)
				}, func(c *remote.Config) { c.OnError = func(error) { runtime.Goexit() } })
				events, err := readAll(t, b, 1)
				require.Len(t, events, 1)
				require.ErrorIs(t, err, usercode.ErrGoexit)
				require.Zero(t, open.Load(), "connections")
				require.NoError(t, b.Close())
			})
		})
	}
}

// A call whose transport ends the goroutine returns an error.
func TestRevision_OfATransportThatEndsItsGoroutine(t *testing.T) {
	exits := true
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		if exits {
			runtime.Goexit()
		}
		return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[]}`))
	})
	_, err := b.Revision(t.Context())
	require.ErrorIs(t, err, usercode.ErrGoexit)
	_, err = b.StoreID(t.Context())
	require.ErrorIs(t, err, usercode.ErrGoexit)
	exits = false
	rev, err := b.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Revision(7), rev)
}
