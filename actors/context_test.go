package actors_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

func TestEnums_String(t *testing.T) {
	require.Equal(t, "Stop Restart Resume Directive(9)",
		fmt.Sprint(actors.Stop, " ", actors.Restart, " ", actors.Resume, " ", actors.Directive(9)))
	require.Equal(t, "Accepted Full Gone Verdict(9)",
		fmt.Sprint(actors.Accepted, " ", actors.Full, " ", actors.Gone, " ", actors.Verdict(9)))
}

func TestContext_DescribesTheActor(t *testing.T) {
	var log strings.Builder
	clock := clock.NewVirtual(start)
	sys, seeded := newSeeded(t, actors.SystemConfig{Clock: clock, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ref := actors.Spawn(sys, "a", newRunner, actors.Options{})
	ref.Tell(func(ctx *actors.Context) {
		require.Equal(t, ref.ID(), ctx.Self())
		require.Equal(t, "a", ctx.Name())
		require.Same(t, sys, ctx.System())
		require.Equal(t, start, ctx.Clock().Now())
		ctx.Logger().Info("hello")
	})
	seeded.Run()
	require.Contains(t, log.String(), "msg=hello actor=a")
	require.NotContains(t, log.String(), "failed")
}
