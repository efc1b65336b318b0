package main

import (
	"context"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// serveCommand has the flags of watchmill serve.
type serveCommand struct{ server.Flags }

// Run serves until an interrupt or a SIGTERM, and then drains: see [server.Run].
func (c *serveCommand) Run(ctx context.Context, to *streams) error {
	return server.Run(ctx, c.Options(nil, to.stdout, to.stderr))
}
