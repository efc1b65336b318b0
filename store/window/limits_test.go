package window_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

func TestLimits_ErrorsNameTheFieldAndTheFix(t *testing.T) {
	for want, limits := range map[string]window.Limits{
		"Config.Window.MinAge is -1ns, which is negative; zero means 1m15s":       {MinAge: -1},
		"Config.Window.MinEvents is -1, which is negative; zero means none":       {MinEvents: -1},
		"Config.Window.MaxEvents is -1, which is negative; zero means 1048576":    {MaxEvents: -1},
		"Config.Window.MaxBytes is -1, which is negative; zero means 268435456":   {MaxBytes: -1},
		"Config.Window.ChunkSize is -1, which is negative; zero means 256":        {ChunkSize: -1},
		"Config.Window.MinEvents is 9, more than MaxEvents, 8; raise that":        {MinEvents: 9, MaxEvents: 8},
		"Config.Window.ChunkSize is 9, more than MaxEvents, 8; leave it zero":     {ChunkSize: 9, MaxEvents: 8},
		"Config.Window.MinEvents is 1048577, more than MaxEvents, 1048576; raise": {MinEvents: window.DefaultMaxEvents + 1},
	} {
		err := limits.Validate("Config.Window")
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, want)
	}
}

func TestLimits_ThatWork(t *testing.T) {
	for _, limits := range []window.Limits{
		{}, {MaxEvents: 1}, {MinEvents: 8, MaxEvents: 8}, {ChunkSize: 8, MaxEvents: 8}, {MaxBytes: 1},
	} {
		require.NoError(t, limits.Validate("limits"))
	}
}

// A window made with limits that make no sense works all the same.
func TestWindow_WorksWithAnyLimits(t *testing.T) {
	for _, limits := range []window.Limits{
		{MinAge: -1, MinEvents: -1, MaxEvents: -1, MaxBytes: -1, ChunkSize: -1},
		{ChunkSize: 100, MaxEvents: 3},
		{MinEvents: 100, MaxEvents: 3},
		{MaxBytes: 1},
	} {
		w, objects := window.New(limits, nil), tree.New()
		for range 10 {
			put(w, objects, "a")
			w.Trim(start)
		}
		v := w.View()
		require.Equal(t, window.Seq(10), v.Next())
		require.Positive(t, v.Len())
	}
}

// A size that is out of all reason distorts the figures, but their sums neither
// overflow nor turn what the limits mean upside down.
func TestWindow_SizesOutOfAllReasonDoNotOverflow(t *testing.T) {
	for name, size := range map[string]int{"most": math.MaxInt, "least": math.MinInt} {
		t.Run(name, func(t *testing.T) {
			sizeOf := func(*store.Object) int { return size }
			limits := window.Limits{MinEvents: 20, ChunkSize: 4}
			w, objects := window.New(limits, sizeOf), tree.New()
			for i := range 100 {
				put(w, objects, string(rune('a'+i%3)))
				w.Trim(start)
				require.Positive(t, w.View().Bytes())
				require.Positive(t, objects.View().Bytes(sizeOf))
			}
			if size > 0 {
				require.Less(t, w.View().Len(), 30, "more than MaxBytes, so no more than MinEvents stay")
			}
			require.GreaterOrEqual(t, w.View().Len(), 20)
		})
	}
}
