package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/store"
)

// sharedInformers is how many the listeners share: more than one, so that each
// listener has others beside it and yet not all of them.
const sharedInformers = 2

// openListeners makes the informers and the listeners, which listen at once.
func (r *run) openListeners() error {
	h := r.history
	for i := range sharedInformers {
		mirror, err := informer.New(informer.Config[content.Item]{
			Source: r.engine.Source(), Host: r.host, Name: fmt.Sprintf("replay-%d", i), OnError: r.failed.engine,
		})
		if err != nil {
			return err
		}
		h.informers = append(h.informers, mirror)
	}
	for number := range h.Watchers {
		l := &listener{
			outcome: outcome{number: number}, run: r, informer: h.informers[number%len(h.informers)],
			breaks: newBreaks(h.Seed, uint64(number), h.Breaks), broken: make(chan struct{}, 1),
		}
		if err := l.listen(); err != nil {
			return err
		}
		h.others = append(h.others, l)
	}
	return nil
}

// listener is a watcher that is a handler of an informer. Its state is what it
// was told. State and breaks belong to the handler while there is one.
type listener struct {
	outcome
	run      *run
	informer *informer.SharedInformer[content.Item]
	handle   *informer.Registration
	breaks   breaks
	// breaking: a break has come, and broken asks for it.
	breaking bool
	broken   chan struct{}
}

// listen adds a handler, which is told all there is, then what happens.
func (l *listener) listen() (err error) {
	l.state, l.breaking = objects{}, false
	l.handle, err = l.informer.Subscribe(l.told, informer.HandlerOptions{})
	return err
}

// told makes what happened part of the state.
func (l *listener) told(n informer.Notification[content.Item]) {
	if !store.Matches(l.run.history.selected, store.Header(n.Object)) {
		return // never crosses: what is selected is in the key
	}
	had, there := l.state[n.Key()]
	fits := there == (n.Type != engine.Added) && (!there || n.Object.Revision > had.Revision)
	if n.Type == engine.Deleted {
		delete(l.state, n.Key())
	} else {
		l.state[n.Key()] = n.Object
	}
	if !fits {
		l.misfits++
	}
	l.delivered.Add(1)
	if !l.breaking && l.breaks.due(l.run.progressAt(n.Object.Revision)) {
		l.breaking = true
		l.broken <- struct{}{}
	}
}

// consume replaces the handler at each break, and in the end has it handle all
// that has been written.
func (l *listener) consume(ctx, written context.Context) {
	err := l.follow(ctx, written)
	if err == nil {
		err = l.finish(ctx)
	}
	if err != nil && ctx.Err() == nil {
		l.lost = err
	}
}

func (l *listener) follow(ctx, written context.Context) error {
	for {
		select {
		case <-l.broken:
			if err := l.replace(ctx); err != nil {
				return err
			}
		case <-l.handle.Done():
			return l.handle.Err()
		case <-written.Done():
			return nil
		}
	}
}

// replace puts a new handler in the place of one that has not heard everything.
func (l *listener) replace(ctx context.Context) error {
	if err := l.handle.Remove(ctx, informer.Drop); err != nil {
		return err
	}
	l.resumed++
	return l.listen()
}

// finish has the handler handle everything, and breaks that are left happen.
func (l *listener) finish(ctx context.Context) error {
	if err := l.informer.WaitForRevision(ctx, l.run.history.last); err != nil {
		return err
	}
	for {
		err := errors.Join(l.handle.Synced(ctx), l.handle.Remove(ctx, informer.Drain))
		if err != nil || !l.breaking && !l.breaks.due(1) {
			return err
		}
		select {
		case <-l.broken: // asked for by this handler, while it was leaving
		default:
		}
		l.resumed++
		if err := l.listen(); err != nil {
			return err
		}
	}
}
