package serve_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// Valve is a kind whose encoding fails while it is shut, and panics while it has burst.
type Valve struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ValveSpec `json:"spec"`
}

type ValveSpec struct{}

// These are of all valves.
var (
	valvesAreShut     atomic.Bool
	valvesHaveBurst   atomic.Bool
	valvesWereEncoded atomic.Int32
)

func (ValveSpec) MarshalJSON() ([]byte, error) {
	valvesWereEncoded.Add(1)
	if valvesHaveBurst.Load() {
		panic("it has burst")
	}
	if valvesAreShut.Load() {
		return nil, errors.New("it is shut")
	}
	return []byte(`{}`), nil
}

const valvesPath = "/apis/example.com/v1/namespaces/default/valves"

// newValves returns a store with one valve, v.
func newValves(t *testing.T) *registry.Store[Valve] {
	t.Helper()
	valves, err := registry.New(registry.Config[Valve]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Valve"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, valves.Close()) })
	_, err = valves.Create(t.Context(), Valve{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "v"}}, registry.WriteOptions{})
	require.NoError(t, err)
	valvesAreShut.Store(true)
	t.Cleanup(func() { valvesAreShut.Store(false) })
	return valves
}

// An encoding that fails does so for the requests that wait for it, and not for all later ones.
func TestEncoding_ThatFailsIsTriedAgain(t *testing.T) {
	valves := newValves(t)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Resources = []serve.Provider{valves} })
	before := s.handler.Stats()
	for range 2 {
		a := s.get(valvesPath + "/v")
		require.Equal(t, "500 InternalError", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
	}
	require.Equal(t, before.EncodingBytes, s.handler.Stats().EncodingBytes)
	valvesAreShut.Store(false)
	require.Equal(t, 200, s.get(valvesPath+"/v").code)
	misses := s.handler.Stats().EncodingMisses
	require.Equal(t, 200, s.get(valvesPath+"/v").code)
	require.Equal(t, misses, s.handler.Stats().EncodingMisses, "this one is kept")
}

// Code that panics is not called for each reader.
func TestEncoding_ThatPanicsIsNotTriedAgain(t *testing.T) {
	valves := newValves(t)
	valvesHaveBurst.Store(true)
	t.Cleanup(func() { valvesHaveBurst.Store(false) })
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Resources = []serve.Provider{valves} })
	before := valvesWereEncoded.Load()
	for range 2 {
		a := s.get(valvesPath + "/v")
		require.Equal(t, "500 InternalError", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
		require.Contains(t, a.str("message"), "it has burst")
	}
	require.EqualValues(t, 1, valvesWereEncoded.Load()-before)
}

// A list breaks off at an object that cannot be encoded, and so does each that clients ask for then.
func TestLog_SaysThatAnObjectOfAListCannotBeEncodedButNotEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		handler, err := serve.New(serve.Config{Resources: []serve.Provider{newValves(t)}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		list := func() {
			require.PanicsWithValue(t, http.ErrAbortHandler, func() {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+valvesPath, nil))
			})
		}
		for range 3 {
			list()
		}
		require.Len(t, log.lines(), 1)
		require.Contains(t, log.lines()[0], `msg="an object of a list cannot be encoded" path=`+valvesPath)
		time.Sleep(11 * time.Second) // of the bubble
		list()
		require.Len(t, log.lines(), 2)
		require.Contains(t, log.lines()[1], "others=2")
	})
}
