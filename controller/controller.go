package controller

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
)

// Controller reconciles the objects of a source. Make one with [New]. All methods are
// safe for concurrent use.
type Controller[T any] struct {
	core     controllerCore
	informer *informer.SharedInformer[T]
}

// controllerCore is a *[core]. It is an interface to save compile time: a package that
// mentions Controller[Pod] would otherwise compile the methods of every generic type that is
// reachable through the core's fields.
type controllerCore interface {
	start(of ownInformer)
	setHandler(handler *informer.Registration)
	beginAt(synced <-chan struct{})
	enqueue(keys []string)
	hostOf() *engine.Host
	name() string
	add(key string, delay time.Duration) error
	settle(ctx context.Context) error
	handlerDone() <-chan struct{}
	handlerErr() error
	closeReason() error
	stats() Stats
	close() error
}

// ownInformer is an informer that the controller has made and closes.
type ownInformer interface {
	Close() error
	Stop()
}

// New starts a controller, which lists the objects and reconciles each once, and then
// again after changes. It does not block. Close the controller when done.
//
// Errors: [ErrConfig]; [informer.ErrClosed] if the host or the informer is closed.
func New[T any](cfg Config[T]) (*Controller[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := cfg.settings().withDefaults()
	c := &Controller[T]{informer: cfg.Informer}
	host := cfg.Host
	if cfg.Informer != nil {
		host = cfg.Informer.Host()
	}
	s.reconcile = func(ctx context.Context, key string) (Result, error) {
		return cfg.Reconcile(ctx, key, c.informer.Get(key))
	}
	s.synced = func() bool { return c.informer.HasSynced() }
	var err error
	if c.core, err = newCore(s, host); err != nil {
		return nil, err
	}
	var own ownInformer
	if c.informer == nil {
		c.informer, err = informer.New(informer.Config[T]{
			Source: cfg.Source, Prefix: cfg.Prefix, Host: c.core.hostOf(), Name: s.name, OnError: s.onError,
		})
		if err != nil {
			return nil, errors.Join(err, c.core.close())
		}
		own = c.informer
	}
	c.core.start(own)
	keys := cfg.Keys
	if keys == nil {
		keys = func(n informer.Notification[T]) []string { return []string{n.Key()} }
	}
	// Without a bound, since no change may be merged away: Reconcile reads the informer, so it may
	// have acted on an object of which the handler, which is behind, would never hear.
	handler, err := c.informer.Subscribe(func(n informer.Notification[T]) { c.core.enqueue(keys(n)) },
		informer.HandlerOptions{Name: s.name, Resync: cfg.Resync, Buffer: math.MaxInt})
	c.core.setHandler(handler)
	if err != nil {
		return nil, errors.Join(err, c.core.close())
	}
	c.core.beginAt(c.informer.SyncedSignal())
	return c, nil
}

// Informer returns the controller's informer, from which Reconcile may read other
// objects.
func (c *Controller[T]) Informer() *informer.SharedInformer[T] { return c.informer }

// Host returns the host that the controller runs on.
func (c *Controller[T]) Host() *engine.Host { return c.core.hostOf() }

// Name returns the controller's name.
func (c *Controller[T]) Name() string { return c.core.name() }

// Enqueue adds a key to those to be reconciled, whether its object has changed or not. It
// does not block. On a deterministic host whose source has no object, a key that is added
// before the informer has synced waits for Settle. The error is [ErrClosed].
func (c *Controller[T]) Enqueue(key string) error { return c.core.add(key, 0) }

// EnqueueAfter is Enqueue after a delay, for which it does not wait.
func (c *Controller[T]) EnqueueAfter(key string, delay time.Duration) error {
	return c.core.add(key, delay)
}

// Settle blocks until the controller has seen the source's changes up to rev, zero for those
// that have arrived, and no key is queued or being reconciled. Keys that are delayed, as those
// that failed, are not waited for. On a deterministic host it runs everything that can run; on
// others it takes time for each object. It must not be called by Reconcile. Once no more
// changes come (see Done), it waits until no key is queued, and returns Err.
//
// Errors: ctx's cause; [informer.ErrClosed] or why the informer has ended; [ErrClosed] if
// the informer goes on without the controller; those of Err; on a deterministic host
// [engine.ErrIdle] if nothing that can run brings the revision.
func (c *Controller[T]) Settle(ctx context.Context, rev store.Revision) error {
	if err := c.informer.WaitForRevision(ctx, max(rev, 1)); err != nil {
		return err
	}
	if !c.Host().Deterministic() {
		if err := c.passed(ctx); err != nil {
			return err
		}
	}
	if err := c.core.settle(ctx); err != nil {
		return err
	}
	return c.Err() // it has not seen all changes if no more come
}

// passed waits until the controller's handler has been given everything that can be read from
// the informer, which delivers that before it adds another handler. An informer, or a lease, that
// has ended adds none, and ends the controller's.
func (c *Controller[T]) passed(ctx context.Context) error {
	last, err := c.informer.Subscribe(func(informer.Notification[T]) {}, informer.HandlerOptions{Name: c.Name()})
	if err == nil {
		defer last.Stop(informer.Drop)
		err = last.WaitSynced(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return c.Host().Await(ctx, c.Done())
}

// Done returns a channel that is closed when no more changes will come: after Close, when its
// informer has ended, as when the source has ended for good, when the lease that has given it
// the informer was released, or when Keys has ended the goroutine. Unless it was closed, keys
// are still reconciled, if the informer has synced before: those that were queued, that
// failed, or that Enqueue adds.
func (c *Controller[T]) Done() <-chan struct{} { return c.core.handlerDone() }

// Err returns why Done is closed: [ErrClosed], why the informer has ended, such as an
// [*informer.SourceError], [informer.ErrRemoved] if its lease was released, or an
// [*informer.PanicError] about Keys. It is nil before.
func (c *Controller[T]) Err() error {
	select {
	case <-c.Done():
	default:
		return nil
	}
	if err := c.core.closeReason(); err != nil {
		return err
	}
	return cmp.Or(c.informer.Err(), c.core.handlerErr())
}

// Stats returns the current numbers. It does not block.
func (c *Controller[T]) Stats() Stats { return c.core.stats() }

// Close stops following the source, ends the contexts of the calls that run, and returns
// when they have returned. Queued keys are dropped. A call that has to be completed goes on
// with [context.WithoutCancel] of its context. If a call does not return within the
// host's CloseTimeout, the error is a [*CloseError] that names its key. If Reconcile, or
// another function of the configuration, calls it, it does not wait, and the error is
// [engine.ErrInHandler]; see [engine.Engine.Close]. Closing again waits again.
func (c *Controller[T]) Close() error { return c.core.close() }

// Observed is a [*Controller] of any type, for what shows its numbers: packages
// controller/prommetrics and inspect. It may gain methods: a type of your own is one by embedding
// one.
type Observed interface {
	Name() string
	Stats() Stats

	isObserved()
}

func (*Controller[T]) isObserved() {}

// Stats are the numbers of a controller.
type Stats struct {
	// Queue says how many keys wait, are being reconciled, and are delayed.
	Queue queue.WorkQueueStats
	// Workers is how many calls may run at once.
	Workers int
	// Lag is how many changes wait for Keys, including the one that it is called for.
	Lag int
	// Reconciled counts the calls that succeeded, Failed those that failed, and
	// GivenUp the keys that were given up.
	Reconciled, Failed, GivenUp uint64
}
