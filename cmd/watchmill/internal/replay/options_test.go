package replay_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
)

func TestOptions_WrongOnesAreNamedByTheirFlag(t *testing.T) {
	good := replay.Options{File: shipped, Watchers: 10}
	for flag, spoil := range map[string]func(*replay.Options){
		"FILE":          func(o *replay.Options) { o.File = "" },
		"--watchers":    func(o *replay.Options) { o.Watchers = 0 },
		"--slow":        func(o *replay.Options) { o.Slow = 11 },
		"--reconnect":   func(o *replay.Options) { o.Reconnect = -1 },
		"--window":      func(o *replay.Options) { o.Window = -1 },
		"--speed":       func(o *replay.Options) { o.Speed = math.NaN() },
		"--policy":      func(o *replay.Options) { o.Policy = 77 },
		"--via":         func(o *replay.Options) { o.Via = 77 },
		"--select":      func(o *replay.Options) { o.Select = "dir" },
		"ProgressEvery": func(o *replay.Options) { o.ProgressEvery = -1 },
	} {
		opts := good
		spoil(&opts)
		_, err := replay.Run(bg, opts)
		require.ErrorIs(t, err, replay.ErrOptions)
		var wrong *replay.OptionError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, flag, wrong.Option)
		require.ErrorContains(t, err, flag+" ")
	}
	opts := good
	opts.Select = "size=3"
	_, err := replay.Run(bg, opts)
	require.EqualError(t, err, `--select is "size=3": unknown field "size": declared are dir, ext; write it like dir=actor,ext=go`)
	for _, c := range []struct {
		flag  string
		spoil func(*replay.Options)
	}{
		{"--watchers", func(o *replay.Options) { o.Watchers = replay.MaxWatchers + 1 }},
		{"--window", func(o *replay.Options) { o.Watchers, o.Window = replay.MaxWatchers, -1 }},
		{"--slow", func(o *replay.Options) { o.Slow = -1 }},
		{"--reconnect", func(o *replay.Options) { o.Reconnect = replay.MaxReconnects + 1 }},
		{"--slow", func(o *replay.Options) { o.Slow, o.Via = 1, load.ViaObjectCache }},
		{"--policy", func(o *replay.Options) { o.Policy, o.Via = engine.Conflate, load.ViaObjectCache }},
		{"--via", func(o *replay.Options) { o.Via = load.Via(len(load.ViaNames)) }},
		{"--speed", func(o *replay.Options) { o.Speed = math.Inf(1) }},
		{"--speed", func(o *replay.Options) { o.Speed = -1 }},
		{"--select", func(o *replay.Options) { o.Select = "size=3" }},
	} {
		opts := good
		c.spoil(&opts)
		_, err := replay.Run(bg, opts)
		var wrong *replay.OptionError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, c.flag, wrong.Option, err)
	}
}
