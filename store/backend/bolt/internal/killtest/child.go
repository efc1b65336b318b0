package killtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/window"
)

// Child writes to the file at path until it is killed. It prints each acknowledged write
// to out, and each event of a watch that starts after from, a line each. It returns only
// with an error.
//
//	put KEY REVISION TEXT     acknowledged; text is "" for a deletion
//	saw KEY REVISION TEXT     an event of the watch
func Child(path string, writers int, from store.Revision, seed uint64, out io.Writer) error {
	f, err := bolt.Open(path, bolt.Options{LockTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	b, err := bolt.New(f, typeName, config())
	if err != nil {
		return err
	}
	c := &child{backend: b, out: NewLines(out)}
	var all sync.WaitGroup
	errs := make(chan error, writers+1)
	all.Go(func() { errs <- c.follow(from) })
	for w := range writers {
		all.Go(func() { errs <- c.write(w, seed) })
	}
	return <-errs
}

const typeName = "items"

// config keeps little history, so that compaction runs all the time.
func config() bolt.Config {
	return bolt.Config{
		Schema: backendtest.Schema(), FirstRevision: 1,
		Retain: window.Limits{MinEvents: 4000, MaxEvents: 5000},
	}
}

type child struct {
	backend *bolt.Backend
	out     *Lines
}

// write changes keys of its own: creates, updates, deletes and creates again.
func (c *child) write(writer int, seed uint64) error {
	ctx := context.Background()
	for i := 0; ; i++ {
		key := fmt.Sprintf("w%d/k%d", writer, i%5)
		prev, err := c.backend.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if prev != nil && i%7 == 6 {
			gone, err := c.backend.Remove(ctx, prev)
			if err != nil {
				return err
			}
			if err := c.out.Tell(Line{"put", key, gone.Revision, ""}); err != nil {
				return err
			}
			continue
		}
		text := fmt.Sprintf("%d.%d.%d", seed, writer, i)
		o, err := c.backend.Put(ctx, backendtest.Draft(backendtest.Value{Key: key, Text: text}), prev, backend.PutOptions{})
		if err != nil {
			return err
		}
		if err := c.out.Tell(Line{"put", key, o.Revision, text}); err != nil {
			return err
		}
	}
}

// follow prints the events of a watch.
func (c *child) follow(from store.Revision) error {
	notified := make(chan struct{}, 1)
	w, err := c.backend.Watch(context.Background(), backend.WatchOptions{From: from, Notify: func() {
		select {
		case notified <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return fmt.Errorf("cannot go on watching after %d: %w", from, err)
	}
	for {
		batch, err := w.Next(256)
		if err != nil {
			return err
		}
		if len(batch.Events) == 0 {
			<-notified
		}
		for _, ev := range batch.Events {
			if err := c.out.Tell(Line{"saw", ev.Key(), ev.Revision, textOf(ev)}); err != nil {
				return err
			}
		}
	}
}

// textOf returns an event's text, "" for a deletion.
func textOf(ev store.Event) string {
	if ev.Type == store.Deleted {
		return ""
	}
	return store.As[backendtest.Item](ev.Object).Value.Text
}
