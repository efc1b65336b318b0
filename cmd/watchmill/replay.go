package main

import (
	"context"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
)

// replayCommand has the flags of watchmill replay.
type replayCommand struct{ replay.Flags }

// Run replays, shows progress on stderr and the report on stdout.
func (c *replayCommand) Run(ctx context.Context, to *streams) error {
	progress := newReplayProgress(to.stderr)
	opts, err := c.Options(replay.Builtin(), progress.show, progress.every)
	if err != nil {
		return err
	}
	report, err := replay.Run(ctx, opts)
	progress.end()
	if err != nil {
		return err
	}
	return c.Finish(ctx, to.stdout, report)
}
