package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/store"
)

const (
	// objectCaches is how many caches the readers share.
	objectCaches = 2
	// readEvery is the time between two reads of all of a reader's objects: often
	// enough to see much of a history, at little cost.
	readEvery = 100 * time.Millisecond
	// settleEvery is the time between two such reads once everything is written, and
	// settleWithin how long a reader waits for the newest state. The readers poll, since
	// an object cache watches single objects and has no revision that all of them have
	// reached.
	settleEvery  = 5 * time.Millisecond
	settleWithin = 30 * time.Second
)

// openReferences makes the object caches and the readers with their references.
func (r *run) openReferences() error {
	h := r.history
	var caches []*objectcache.Cache[content.Item]
	for range objectCaches {
		cache, err := objectcache.New(objectcache.Config[content.Item]{
			Source: r.engine.Source(), Host: r.host, Name: "replay", MaxIdle: objectcache.NeverIdle, OnError: r.failed.engine,
		})
		if err != nil {
			return err
		}
		r.closers = append(r.closers, cache)
		caches = append(caches, cache)
	}
	keys := r.selectedKeys()
	for number := range h.Watchers {
		reader := &referenceReader{
			outcome: outcome{number: number, state: states.Objects{}},
			run:     r, cache: caches[number%len(caches)], keys: keys,
			breaks: newBreaks(h.Seed, uint64(number), h.Breaks),
		}
		if err := reader.acquire(); err != nil {
			return err
		}
		h.clients = append(h.clients, reader)
	}
	return nil
}

// selectedKeys returns the keys of all objects that the history names and the
// watchers select, in the order in which they first occur.
func (r *run) selectedKeys() (keys []string) {
	seen := map[string]bool{}
	for i := range r.history.Changes {
		key := r.history.Changes[i].Key
		if seen[key] {
			continue
		}
		seen[key] = true
		if r.selects(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// referenceReader is a watcher that has a reference to each object. It reads them in
// rounds, so that it sees the newest state of each and not every event.
type referenceReader struct {
	outcome
	run    *run
	cache  *objectcache.Cache[content.Item]
	breaks breaks
	keys   []string
	refs   []*objectcache.Ref[content.Item]
}

func (r *referenceReader) acquire() error {
	for _, key := range r.keys {
		ref, err := r.cache.Acquire(key)
		if err != nil {
			return err
		}
		r.refs = append(r.refs, ref)
	}
	return nil
}

func (r *referenceReader) release() {
	for _, ref := range r.refs {
		ref.Release()
	}
	r.refs = r.refs[:0]
}

func (r *referenceReader) consume(ctx, written context.Context) {
	defer r.release()
	err := r.follow(ctx, written)
	if err == nil {
		err = r.settle(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.lost = err
	}
}

// follow reads until everything is written. At a disconnect it releases its references and
// acquires new ones.
func (r *referenceReader) follow(ctx, written context.Context) error {
	for {
		if err := r.read(ctx); err != nil {
			return err
		}
		over := pace.Sleep(written, readEvery) != nil
		for r.breaks.due(float64(r.run.history.written.Load()) / float64(len(r.run.history.Changes))) {
			r.release()
			r.resumed++
			if err := r.acquire(); err != nil {
				return err
			}
		}
		if over {
			return context.Cause(ctx) // ends written, too
		}
	}
}

// settle reads until the state is the backend's, for at most settleWithin.
func (r *referenceReader) settle(ctx context.Context) error {
	for end := time.Now().Add(settleWithin); ; {
		if err := r.read(ctx); err != nil {
			return err
		}
		if states.Difference(r.state, r.run.history.finalState) == "" || time.Now().After(end) {
			return nil // compare reports what is missing
		}
		if err := pace.Sleep(ctx, settleEvery); err != nil {
			return err
		}
	}
}

// read reads all objects once.
func (r *referenceReader) read(ctx context.Context) error {
	for _, ref := range r.refs {
		o, err := ref.Get(ctx)
		if err != nil && !errors.Is(err, objectcache.ErrNotFound) {
			return err
		}
		r.applyRead(ref.Key(), o)
	}
	return nil
}

// applyRead adds what was read to the state; nil means that there is no object. A change to an
// older revision of an object is a misfit.
func (r *referenceReader) applyRead(key string, o states.Item) {
	had := r.state[key]
	switch {
	case o == nil && had != nil:
		delete(r.state, key)
	case o == nil || o == had:
		return
	default:
		r.state[key] = o
		if had != nil && o.Revision <= had.Revision {
			r.misfits++
		}
	}
	r.delivered.Add(1)
}

// sharedInformers is how many informers the clients share, at most.
const sharedInformers = 2

// openHandlers makes the informers and the clients, which subscribe at once. Each informer has a
// client, which waits until the informer has everything.
func (r *run) openHandlers() error {
	h := r.history
	for i := range min(sharedInformers, h.Watchers) {
		inf, err := informer.New(informer.Config[content.Item]{
			Source: r.engine.Source(), Host: r.host, Name: fmt.Sprintf("replay-%d", i), OnError: r.failed.engine,
		})
		if err != nil {
			return err
		}
		r.closers = append(r.closers, inf)
		h.informers = append(h.informers, inf)
	}
	for number := range h.Watchers {
		l := &handlerClient{
			outcome: outcome{number: number}, run: r, informer: h.informers[number%len(h.informers)],
			breaks: newBreaks(h.Seed, uint64(number), h.Breaks), disconnect: make(chan struct{}, 1),
		}
		if err := l.subscribe(); err != nil {
			return err
		}
		h.clients = append(h.clients, l)
	}
	return nil
}

// handlerClient is a watcher that is a handler of an informer. Its notifications add up to
// its state. State and breaks belong to the handler's goroutine while there is a handler.
type handlerClient struct {
	outcome
	run      *run
	informer *informer.SharedInformer[content.Item]
	handle   *informer.Registration
	breaks   breaks
	// disconnecting: the handler has reached a point at which it disconnects, and has
	// sent to disconnect.
	disconnecting bool
	disconnect    chan struct{}
}

// subscribe adds a handler, which gets all objects and then the changes.
func (c *handlerClient) subscribe() (err error) {
	c.state, c.disconnecting = states.Objects{}, false
	c.handle, err = c.informer.Subscribe(c.receive, informer.HandlerOptions{})
	return err
}

// receive applies a notification to the state.
func (c *handlerClient) receive(n informer.Notification[content.Item]) {
	if !store.Matches(c.run.history.selected, store.Header(n.Object)) {
		return // the key alone determines what is selected, so no object leaves the selection
	}
	had, there := c.state[n.Key()]
	fits := there == (n.Type != engine.Added) && (!there || n.Object.Revision > had.Revision)
	if n.Type == engine.Deleted {
		delete(c.state, n.Key())
	} else {
		c.state[n.Key()] = n.Object
	}
	if !fits {
		c.misfits++
	}
	c.delivered.Add(1)
	if !c.disconnecting && c.breaks.due(c.run.progressAt(n.Object.Revision)) {
		c.disconnecting = true
		c.disconnect <- struct{}{}
	}
}

// consume replaces the handler at each disconnect, and at the end waits until it has
// handled all that was written.
func (c *handlerClient) consume(ctx, written context.Context) {
	err := c.follow(ctx, written)
	if err == nil {
		err = c.finish(ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.lost = err
	}
}

func (c *handlerClient) follow(ctx, written context.Context) error {
	for {
		select {
		case <-c.disconnect:
			if err := c.replace(ctx); err != nil {
				return err
			}
		case <-c.handle.Done():
			return c.handle.Err()
		case <-written.Done():
			return context.Cause(ctx) // ends written, too
		}
	}
}

// replace removes the handler, with the notifications that it has not handled, and adds a
// new one.
func (c *handlerClient) replace(ctx context.Context) error {
	if err := c.handle.Remove(ctx, informer.Drop); err != nil {
		return err
	}
	c.resumed++
	return c.subscribe()
}

// finish waits until the handler has handled everything, and then makes the remaining
// disconnects.
func (c *handlerClient) finish(ctx context.Context) error {
	if err := c.informer.WaitForRevision(ctx, c.run.history.last); err != nil {
		return err
	}
	for {
		err := errors.Join(c.handle.Synced(ctx), c.handle.Remove(ctx, informer.Drain))
		if err != nil || !c.disconnecting && !c.breaks.due(1) {
			return err
		}
		select {
		case <-c.disconnect: // signalled by this handler while it was removed
		default:
		}
		c.resumed++
		if err := c.subscribe(); err != nil {
			return err
		}
	}
}

// breaks are a number of random points of a history at which a consumer
// disconnects. They are drawn one after the other, so any number of them takes constant
// space. The zero value has none.
type breaks struct {
	rand *rand.Rand
	left int
	// next is the first remaining point, as a fraction of the history.
	next float64
}

func newBreaks(seed, consumer uint64, n int) breaks {
	b := breaks{rand: rand.New(rand.NewPCG(seed, consumer)), left: n}
	b.draw()
	return b
}

// draw moves to the next point. The least of n uniform draws from (next, 1) lies
// where its complement is the nth root of a uniform one.
func (b *breaks) draw() {
	if b.left > 0 {
		b.next += (1 - b.next) * (1 - math.Pow(b.rand.Float64(), 1/float64(b.left)))
	}
}

// skip removes the first n points.
func (b *breaks) skip(n int) {
	for ; n > 0 && b.left > 0; n-- {
		b.left--
		b.draw()
	}
}

// due reports whether the next point has been reached, and if so removes it.
func (b *breaks) due(progress float64) bool {
	if b.left == 0 || progress < b.next {
		return false
	}
	b.left--
	b.draw()
	return true
}
