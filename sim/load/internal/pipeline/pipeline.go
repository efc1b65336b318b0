package pipeline

import (
	"context"
	"errors"
	"sync"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// Pipeline is a queue with its indexer. Make one with [New].
type Pipeline struct {
	fifo    *queue.DeltaFIFO[states.Item]
	indexer *cache.Indexer[states.Item]
	popping sync.WaitGroup
	// err is the first error of the indexer, valid when popping has ended.
	err error
}

func keyOf(o states.Item) (string, error) { return o.Key, nil }

// New returns a pipeline without objects, whose indexer has these indexes. It runs until it is
// finished.
func New(indexers cache.Indexers[states.Item]) (*Pipeline, error) {
	indexer, err := cache.NewIndexer(cache.StoreConfig[states.Item]{Key: keyOf}, indexers)
	if err != nil {
		return nil, err
	}
	fifo, err := queue.NewDeltaFIFO(queue.DeltaFIFOConfig[states.Item]{Key: keyOf, Known: indexer})
	if err != nil {
		return nil, err
	}
	p := &Pipeline{fifo: fifo, indexer: indexer}
	p.popping.Go(p.pop)
	return p, nil
}

// pop applies the queued deltas until the queue is closed and empty.
func (p *Pipeline) pop() {
	for {
		err := p.fifo.Pop(context.Background(), p.apply)
		switch {
		case errors.Is(err, queue.ErrClosed):
			return
		case err != nil && p.err == nil:
			p.err = err
		}
	}
}

// apply puts the deltas of one object into the indexer.
func (p *Pipeline) apply(deltas queue.Deltas[states.Item], _ bool) error {
	for _, d := range deltas {
		if d.Type == queue.DeltaDeleted {
			p.indexer.DeleteByKey(d.Key, d.Deleted.Last.Revision)
		} else if err := p.indexer.Update(d.Object); err != nil {
			return err
		}
	}
	return nil
}

// Queue queues the changes of events.
func (p *Pipeline) Queue(events []engine.Event[content.Item]) error {
	for i := range events {
		if err := p.queueOne(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pipeline) queueOne(ev *engine.Event[content.Item]) error {
	switch ev.Type {
	case store.Added:
		return p.fifo.Add(ev.Object)
	case store.Modified:
		return p.fifo.Update(ev.Object)
	case store.Deleted:
		return p.fifo.Delete(ev.Object)
	}
	return nil
}

// Replace replaces the state by that of a list.
func (p *Pipeline) Replace(list []states.Item, rev engine.Revision) error {
	return p.fifo.Replace(list, rev)
}

// Finish waits until the queue is empty and returns the state of the indexer, and its
// first error.
func (p *Pipeline) Finish() (states.Objects, error) {
	p.fifo.Close()
	p.popping.Wait()
	return states.Of(p.indexer.List()), p.err
}
