package apiextensions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/watchmill/watchmill/serve"
)

// The longest times for what a kind that is no longer served has begun: lastReplaced for the requests that
// have found it before another one took its place, lastRemoved for those of a kind that is gone, which the
// other definitions wait for.
const (
	lastReplaced = time.Minute
	lastRemoved  = 5 * time.Second
)

// ending closes the kinds that others have replaced, each once no request uses it. The kinds of one
// definition share it: their objects stay open until all are closed.
type ending struct {
	// life ends when nothing is to be waited for any more.
	life    context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

func newEnding() *ending {
	e := &ending{}
	e.life, e.stop = context.WithCancel(context.Background())
	return e
}

// close closes a kind that the server has replaced, in the background.
func (e *ending) close(server *serve.Server, k *kind) {
	e.running.Go(func() {
		awaitUnused(e.life, lastReplaced, server, k)
		err := k.closeStores()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.errs = append(e.errs, err)
	})
}

// finish closes all kinds without waiting for their requests any longer. It returns the errors of closing
// them.
func (e *ending) finish() error {
	e.stop()
	e.running.Wait()
	return errors.Join(e.errs...)
}

// awaitUnused waits until no request uses a kind that the server does not serve any more, but no longer than
// limit, and only as long as ctx lasts.
func awaitUnused(ctx context.Context, limit time.Duration, server *serve.Server, k *kind) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_ = server.WaitUnused(ctx, k) // the requests that are left are told to come back
}
