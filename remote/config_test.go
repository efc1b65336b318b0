package remote_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// The largest numbers mean no limit, and do not overflow.
func TestConfig_LargestNumbersAreNoLimit(t *testing.T) {
	origin := newServer(t)
	origin.create("a", 1)
	b := backendAt(t, origin.url, func(cfg *remote.Config) {
		cfg.BufferBytes, cfg.MaxListBytes = math.MaxInt, math.MaxInt
		cfg.WatchTimeout, cfg.RequestTimeout, cfg.MaxPause = math.MaxInt64, math.MaxInt64, math.MaxInt64
	})
	_, err := b.Get(t.Context(), "default/a")
	require.NoError(t, err)
	list, err := b.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: list.Revision, Notify: func() {}})
	require.NoError(t, err)
	w.Close()
}

// What a URL or a namespace would make of the paths of requests must not be those of others.
func TestConfig_PathsAreThoseOfTheKind(t *testing.T) {
	format, err := registry.FormatOf(widgets(new(atomic.Int64)))
	require.NoError(t, err)
	for field, cfg := range map[string]remote.Config{
		"URL":       {URL: "http://127.0.0.1?"},
		"Namespace": {URL: "http://127.0.0.1", Namespace: ".."},
	} {
		_, err := remote.New(format, cfg)
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, ": "+field+" ")
	}
	for _, url := range []string{"http://127.0.0.1#", "http://127.0.0.1/#"} {
		_, err := remote.Kinds(t.Context(), remote.Config{URL: url})
		require.ErrorIs(t, err, usercode.ErrConfig)
	}
	_, err = remote.New(format, remote.Config{URL: "http://127.0.0.1", Namespace: "."})
	require.ErrorIs(t, err, usercode.ErrConfig)
}

func TestNew_RefusesNoFormat(t *testing.T) {
	_, err := remote.New(nil, remote.Config{URL: "http://127.0.0.1"})
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.ErrorContains(t, err, "format is nil; give that of the kind")
}

// A file's last line break is not part of the token in it.
func TestConfig_ATokenHasNoLineBreak(t *testing.T) {
	_, err := remote.Kinds(t.Context(), remote.Config{URL: "http://127.0.0.1", Token: "secret\n"})
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.ErrorContains(t, err, ": Token ")
	require.NotContains(t, err.Error(), "secret")
}

// It passes all writes on, so its admitters would refuse none.
func TestReplica_WithAdmittersIsRefused(t *testing.T) {
	cfg := widgets(new(atomic.Int64))
	cfg.Engine.Backend = backendAt(t, newServer(t).url)
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(context.Context, *registry.Admission) error { return errors.New("no") })}
	_, err := registry.New(cfg)
	var wrong *engine.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Admit", wrong.Field)
}
