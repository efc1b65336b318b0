package reads

import (
	"context"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Engine is an [engine.Engine] without its type of objects. Its methods block and fail as those of that do.
type Engine interface {
	Get(ctx context.Context, key string, opts engine.GetOptions) (*store.Object, error)
	List(ctx context.Context, opts engine.ListOptions) (*Page, error)
	Watch(ctx context.Context, opts engine.WatchOptions) (Watch, error)
	WaitForRevision(ctx context.Context, rev engine.Revision) error
	Timeline(ctx context.Context) (engine.Timeline, error)
	Readiness() engine.Readiness
}

// Page is a page of a list.
type Page struct {
	Items    []*store.Object
	Revision engine.Revision
	// Continue is the token for the next page, "" on the last.
	Continue string
	// Remaining is the number of objects after this page, -1 if unknown.
	Remaining int
	Timeline  engine.Timeline
}

// Watch is a running watch. Its methods are those of [engine.Watch].
type Watch interface {
	Next(ctx context.Context) ([]store.Event, error)
	Stop()
	Revision() engine.Revision
	Lag() uint64
}
