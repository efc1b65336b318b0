package queue_test

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// podObject is a stored pod.
type podObject = *engine.Object[pod]

func podKey(o podObject) (string, error) { return o.Key, nil }

func podsByPhase(o podObject) ([]string, error) { return []string{o.Value.Phase}, nil }

// toFIFO is the sink of a Reflector: it queues the lists and changes.
type toFIFO struct{ fifo *queue.DeltaFIFO[podObject] }

// Offer runs in the Reflector's turn, so it must not block; the queue never does.
func (s toFIFO) Offer(u reflector.Update) actors.Verdict {
	var err error
	switch u.Kind {
	case reflector.Replace:
		err = s.fifo.Replace(store.AsObjects[engine.Object[pod]](u.Objects), u.Revision)
	case reflector.Changes:
		for _, ev := range u.Events {
			err = s.queue(ev.Type, store.As[engine.Object[pod]](ev.Object))
		}
	}
	if err != nil {
		return actors.Gone // the queue is closed: that ends the Reflector
	}
	return actors.Accepted
}

func (s toFIFO) queue(change store.EventType, o podObject) error {
	switch change {
	case store.Added:
		return s.fifo.Add(o)
	case store.Modified:
		return s.fifo.Update(o)
	case store.Deleted:
		return s.fifo.Delete(o)
	}
	return nil
}

// apply applies deltas to an indexer and prints them.
func apply(indexer *cache.Indexer[podObject]) func(queue.Deltas[podObject], bool) error {
	return func(deltas queue.Deltas[podObject], initial bool) error {
		for _, d := range deltas {
			fmt.Println(d.Type, d.Key)
			if d.Type == queue.DeltaDeleted {
				indexer.DeleteByKey(d.Key, d.Deleted.Last.Revision)
			} else if err := indexer.Update(d.Object); err != nil {
				return err
			}
		}
		return nil
	}
}

// The classical pipeline: a Reflector lists and watches, a DeltaFIFO collects the
// changes by object, and the consumer pops them into an indexer. The queue compares
// lists with the indexer. An informer does all of this.
//
//	Reflector ─Replace Add Update Delete─▶ DeltaFIFO ─Pop─▶ Indexer
//	                                           ▲               │
//	                                           └──── Known ────┘
func Example_pipeline() {
	ctx := context.Background()
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	indexer, err := cache.NewIndexer(cache.StoreConfig[podObject]{Key: podKey}, cache.Indexers[podObject]{"phase": podsByPhase})
	if err != nil {
		fmt.Println(err)
		return
	}
	fifo, err := queue.NewDeltaFIFO(queue.DeltaFIFOConfig[podObject]{Key: podKey, Known: indexer})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fifo.Close()
	pods.Create(ctx, pod{"db", "Running"})
	pods.Create(ctx, pod{"web", "Pending"})
	if _, err = reflector.Spawn(engine.SystemOf(pods.Host()), reflector.Config{
		Source: pods.Source(), Sink: toFIFO{fifo}, Rand: pods.Host().NewRand(),
	}); err != nil {
		fmt.Println(err)
		return
	}

	pop := func(times int) {
		for range times {
			if err := fifo.Pop(ctx, apply(indexer)); err != nil {
				fmt.Println(err)
			}
		}
	}
	pop(2)
	fmt.Println("synced:", fifo.HasSynced())
	pods.Put(ctx, pod{"web", "Running"})
	pop(1)
	pods.Delete(ctx, "db", engine.DeleteOptions{})
	pop(1)
	keys, err := indexer.IndexKeys("phase", "Running")
	fmt.Println(keys, err)
	// Output:
	// Replaced db
	// Replaced web
	// synced: true
	// Updated web
	// Deleted db
	// [web] <nil>
}
