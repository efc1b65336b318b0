package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

func TestWindowLimitsErrorsNameTheFieldAndTheFix(t *testing.T) {
	for want, limits := range map[string]store.WindowLimits{
		"WindowLimits.MinAge: -1ns is negative; zero means 1m15s":         {MinAge: -1},
		"WindowLimits.MinEvents: -1 is negative; zero means none":         {MinEvents: -1},
		"WindowLimits.MaxEvents: -1 is negative; zero means 1048576":      {MaxEvents: -1},
		"WindowLimits.MaxBytes: -1 is negative; zero means 268435456":     {MaxBytes: -1},
		"WindowLimits.ChunkSize: -1 is negative; zero means 256":          {ChunkSize: -1},
		"WindowLimits.MinEvents: 9 is more than MaxEvents, 8; raise that": {MinEvents: 9, MaxEvents: 8},
		"WindowLimits.ChunkSize: 9 is more than MaxEvents, 8; leave":      {ChunkSize: 9, MaxEvents: 8},
		"WindowLimits.MinEvents: 1048577 is more than MaxEvents, 10485":   {MinEvents: store.DefaultMaxEvents + 1},
	} {
		err := limits.Validate()
		limit := (*store.LimitError)(nil)
		require.ErrorAs(t, err, &limit)
		require.ErrorContains(t, err, want)
		require.Contains(t, want, "."+limit.Field+":")
	}
}

func TestWindowLimitsThatWork(t *testing.T) {
	for _, limits := range []store.WindowLimits{
		{}, {MaxEvents: 1}, {MinEvents: 8, MaxEvents: 8}, {ChunkSize: 8, MaxEvents: 8}, {MaxBytes: 1},
	} {
		require.NoError(t, limits.Validate())
	}
}

// A window made with limits that make no sense works all the same.
func TestWindowWorksWithAnyLimits(t *testing.T) {
	for _, limits := range []store.WindowLimits{
		{MinAge: -1, MinEvents: -1, MaxEvents: -1, MaxBytes: -1, ChunkSize: -1},
		{ChunkSize: 100, MaxEvents: 3},
		{MinEvents: 100, MaxEvents: 3},
		{MaxBytes: 1},
	} {
		w, tree := store.NewWindow(limits, nil), store.NewTree()
		for range 10 {
			put(w, tree, "a")
			w.Trim(start)
		}
		v := w.View()
		require.Equal(t, store.Seq(10), v.Next())
		require.Positive(t, v.Len())
	}
}
