package clients

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/breaks"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/store"
)

// sharedInformers is how many informers the clients share, at most.
const sharedInformers = 2

// Handlers makes the informers and the clients, which subscribe at once. Each informer has a
// client, which waits until the informer has everything.
func Handlers(cfg Config) ([]Client, []*informer.SharedInformer[content.Item], error) {
	var informers []*informer.SharedInformer[content.Item]
	for i := range min(sharedInformers, cfg.Count) {
		inf, err := informer.New(informer.Config[content.Item]{
			Source: cfg.Engine.Source(), Host: cfg.Host, Name: fmt.Sprintf("replay-%d", i), OnError: cfg.OnError,
		})
		if err != nil {
			return nil, nil, err
		}
		cfg.Own(inf)
		informers = append(informers, inf)
	}
	var all []Client
	for number := range cfg.Count {
		c := &handlerClient{
			Outcome: Outcome{Number: number}, history: cfg.History, informer: informers[number%len(informers)],
			breaks: breaks.New(cfg.Seed, uint64(number), cfg.Breaks), disconnect: make(chan struct{}, 1),
		}
		if err := c.subscribe(); err != nil {
			return nil, nil, err
		}
		all = append(all, c)
	}
	return all, informers, nil
}

// handlerClient is a watcher that is a handler of an informer. Its notifications add up to
// its state. State and breaks belong to the handler's goroutine while there is a handler.
type handlerClient struct {
	Outcome
	history  History
	informer *informer.SharedInformer[content.Item]
	handle   *informer.Registration
	breaks   breaks.Points
	// disconnecting: the handler has reached a point at which it disconnects, and has
	// sent to disconnect.
	disconnecting bool
	disconnect    chan struct{}
}

// subscribe adds a handler, which gets all objects and then the changes.
func (c *handlerClient) subscribe() (err error) {
	c.State, c.disconnecting = states.Objects{}, false
	c.handle, err = c.informer.Subscribe(c.receive, informer.HandlerOptions{})
	return err
}

// receive applies a notification to the state.
func (c *handlerClient) receive(n informer.Notification[content.Item]) {
	if !c.history.Selects(store.Header(n.Object)) {
		return // the key alone determines what is selected, so no object leaves the selection
	}
	had, there := c.State[n.Key()]
	fits := there == (n.Type != engine.Added) && (!there || n.Object.Revision > had.Revision)
	if n.Type == engine.Deleted {
		delete(c.State, n.Key())
	} else {
		c.State[n.Key()] = n.Object
	}
	if !fits {
		c.Misfits++
	}
	c.Delivered.Add(1)
	if !c.disconnecting && c.breaks.Due(c.history.ProgressAt(n.Object.Revision)) {
		c.disconnecting = true
		c.disconnect <- struct{}{}
	}
}

// consume replaces the handler at each disconnect, and at the end waits until it has
// handled all that was written.
func (c *handlerClient) Consume(ctx, written context.Context) {
	err := c.follow(ctx, written)
	if err == nil {
		err = c.finish(ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.Lost = err
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
	c.Resumed++
	return c.subscribe()
}

// finish waits until the handler has handled everything, and then makes the remaining
// disconnects.
func (c *handlerClient) finish(ctx context.Context) error {
	if err := c.informer.WaitForRevision(ctx, c.history.Last()); err != nil {
		return err
	}
	for {
		err := errors.Join(c.handle.WaitSynced(ctx), c.handle.Remove(ctx, informer.Drain))
		if err != nil || !c.disconnecting && !c.breaks.Due(1) {
			return err
		}
		select {
		case <-c.disconnect: // signalled by this handler while it was removed
		default:
		}
		c.Resumed++
		if err := c.subscribe(); err != nil {
			return err
		}
	}
}
