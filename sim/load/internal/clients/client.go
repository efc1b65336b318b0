package clients

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/store"
)

// Client is a watcher without a watch of its own.
type Client interface {
	// Consume reads until everything has been read, the watcher is lost, or ctx
	// is done. written ends when everything is written.
	Consume(ctx, written context.Context)
	Result() *Outcome
}

// Outcome is the result of one watcher. Except for atomic fields it belongs to the
// watcher's goroutine until that has ended.
type Outcome struct {
	Number int
	// State is the state to which the watcher's events add up.
	State states.Objects

	Delivered         atomic.Uint64
	Resumed, Relisted int
	Conflated         uint64
	// Misfits is how many events did not fit the state.
	Misfits int
	// Lost is why the watch ended, if the watcher did not stop it.
	Lost error
}

// Result returns o.
func (o *Outcome) Result() *Outcome { return o }

// Config says which clients there are, and of which history.
type Config struct {
	Engine *engine.Engine[content.Item]
	Host   *engine.Host
	// OnError gets the errors of caches and informers.
	OnError func(error)
	// Own gets each cache and informer as soon as there is one, to close it at the end.
	Own func(io.Closer)
	// Count is the number of clients, and Breaks how often each disconnects. Seed determines when.
	Count, Breaks int
	Seed          uint64
	History       History
}

// History is the history that the clients watch. It is safe for concurrent use.
type History interface {
	// Keys returns the keys of all its objects that the watchers select, and Selects whether they select an object.
	Keys() []string
	Selects(o *store.Object) bool
	// Progress returns which part has been written, and ProgressAt which part had been at a revision, from 0
	// to 1.
	Progress() float64
	ProgressAt(rev engine.Revision) float64
	// Last returns the revision of the last write, and Final the state after it. Both are for the time when
	// everything is written.
	Last() engine.Revision
	Final() states.Objects
}
