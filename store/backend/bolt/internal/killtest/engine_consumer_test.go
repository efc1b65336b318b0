package killtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// saving is how a consumer saves what it has come to.
type saving int

const (
	// savesNothing: it begins with the state in each life.
	savesNothing saving = iota
	// savesInFile replaces a file after each batch, so that events that were handled may
	// come again: at least once.
	savesInFile
	// savesAfterBatch does so in the journal.
	savesAfterBatch
	// savesWithEvent has the checkpoint in the event's own line: exactly once.
	savesWithEvent
)

// consumer is a reader of watches. What it does with an event is to write it to its
// journal.
type consumer struct {
	name    string
	options engine.WatchOptions
	// selects is equivalent to the selectors in options.
	selects func(thing) bool
	saves   saving
	// read reads watches until the last event or an error.
	read func(*running, context.Context) error
	// few is how many events it handles in a life, zero for all.
	few int
}

func consumers() []consumer {
	all := func(thing) bool { return true }
	red := func(v thing) bool { return v.Color == "red" }
	shared := func(v thing) bool { return strings.HasPrefix(v.Name, "shared/") }
	return []consumer{
		{name: "all", saves: savesWithEvent, selects: all, read: (*running).pull},
		{name: "red", saves: savesWithEvent, selects: red, read: (*running).pull, options: engine.WatchOptions{Labels: "color=red", Bookmarks: true}},
		{name: "big", saves: savesInFile, read: (*running).pull, options: engine.WatchOptions{Fields: "size=big"}, selects: func(v thing) bool { return v.Size == "big" }},
		{name: "shared", saves: savesWithEvent, selects: shared, read: (*running).process, options: engine.WatchOptions{Prefix: "shared"}},
		{name: "one", saves: savesInFile, read: (*running).process, options: engine.WatchOptions{Key: lastKey, Bookmarks: true}, selects: func(v thing) bool { return v.Name == lastKey }},
		{name: "followed", saves: savesInFile, selects: red, read: (*running).follow, options: engine.WatchOptions{Labels: "color=red"}},
		{name: "conflated", saves: savesAfterBatch, selects: all, read: (*running).pull, options: engine.WatchOptions{Policy: engine.Conflate, Buffer: 4, Bookmarks: true}},
		{name: "late", saves: savesWithEvent, selects: all, read: (*running).pull, few: 100},
		{name: "state", saves: savesNothing, selects: red, read: (*running).pull, options: engine.WatchOptions{Labels: "color=red"}},
	}
}

// at returns the options of a watch from a checkpoint, or from the state.
func (c *consumer) at(from engine.Revision, state bool) engine.WatchOptions {
	opts := c.options
	if opts.From = from; state {
		opts.From, opts.InitialState, opts.Bookmarks = 0, true, true
	}
	return opts
}

// running is a consumer in one life of the process.
type running struct {
	consumer
	engine *engine.Engine[thing]
	dir    string
	life   int
	fault  fault

	out     *os.File // the journal
	saved   engine.Checkpoint
	handled int
	// last: the last write was seen; done: everything was read.
	last, done bool
}

// run returns the consumer as it goes on from its checkpoint.
func (c *consumer) run(dir string, life int, e *engine.Engine[thing], f fault) (*running, error) {
	r := &running{consumer: *c, engine: e, dir: dir, life: life}
	if f.consumer == c.name {
		r.fault = f
	}
	var err error
	if r.saved, err = c.checkpoint(dir); err != nil {
		return nil, err
	}
	if r.saved == (engine.Checkpoint{}) {
		if r.saved, err = e.Checkpoint(context.Background(), judge.First); err != nil {
			return nil, err
		}
	}
	r.saved = r.fault.start(r.saved)
	r.out, err = os.OpenFile(c.journal(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return r, err
}

// consume reads watches, one after the other, until the last event.
func (r *running) consume(ctx context.Context) error {
	defer r.out.Close()
	for !r.done {
		err := r.read(r, ctx)
		switch {
		case errors.Is(err, engine.ErrExpired):
			err = r.write(entry{Expired: true})
		case err == nil && !r.done:
			err = errors.New("it ended without a reason")
		}
		if err != nil {
			return fmt.Errorf("consumer %q: %w", r.name, err)
		}
	}
	return nil
}

// begin notes that a watch begins, and returns its options.
func (r *running) begin(ctx context.Context, state bool) (engine.WatchOptions, error) {
	from, err := r.engine.RevisionOf(ctx, r.saved)
	if err != nil {
		return engine.WatchOptions{}, err
	}
	return r.at(from, state), r.write(entry{Begin: &beginning{Life: r.life, From: r.saved, State: state}})
}

// start starts a watch, with the state if what was saved is too old.
func (r *running) start(ctx context.Context, open func(engine.WatchOptions) (*engine.Watch[thing], error)) (*engine.Watch[thing], error) {
	state := r.saves == savesNothing
	for {
		opts, err := r.begin(ctx, state)
		if err != nil {
			return nil, err
		}
		w, err := open(opts)
		if !errors.Is(err, engine.ErrExpired) || state {
			return w, err
		}
		state = true
	}
}

// pull reads a watch by Next.
func (r *running) pull(ctx context.Context) error {
	w, err := r.start(ctx, func(opts engine.WatchOptions) (*engine.Watch[thing], error) { return r.engine.Watch(ctx, opts) })
	if err != nil {
		return err
	}
	defer w.Stop()
	for !r.done {
		events, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if err := r.handle(events, w.Revision()); err != nil {
			return err
		}
		if r.few > 0 && r.handled >= r.few {
			<-ctx.Done()
		}
	}
	return nil
}

// process has a handler called.
func (r *running) process(ctx context.Context) error {
	read := make(chan struct{})
	w, err := r.start(ctx, func(opts engine.WatchOptions) (*engine.Watch[thing], error) {
		return r.engine.Process(ctx, opts, engine.ErrorPolicy{}, func(_ context.Context, ev engine.Event[thing]) error {
			if r.done {
				return nil
			}
			at := ev.Revision
			if ev.Is(engine.Initial) {
				at = 0
			}
			err := r.handle([]engine.Event[thing]{ev}, at)
			if r.done {
				close(read)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	select {
	case <-read:
		return nil
	case <-w.Done():
		return w.Err()
	}
}

// follow reads what engine.Follow gives. A list is noted as the state that it is.
func (r *running) follow(ctx context.Context) error {
	opts, err := r.begin(ctx, false)
	if err != nil {
		return err
	}
	for up, err := range engine.Follow(ctx, r.engine, opts) {
		if err != nil {
			return err
		}
		events := up.Events
		if up.List != nil {
			if _, err := r.begin(ctx, true); err != nil {
				return err
			}
			for _, o := range up.List.Items {
				events = append(events, engine.Event[thing]{Type: engine.Added, Marks: engine.Initial, Revision: o.Revision, Object: o})
			}
			events = append(events, engine.Event[thing]{Type: engine.Bookmark, Marks: engine.InitialEnd, Revision: up.List.Revision})
		}
		if err := r.handle(events, up.Revision); err != nil || r.done {
			return err
		}
	}
	return nil
}

// handle writes events to the journal, and saves that everything up to a revision is
// handled, unless that is zero.
func (r *running) handle(events []engine.Event[thing], at engine.Revision) error {
	saved := engine.Checkpoint{Store: r.saved.Store, Revision: at}
	events, early := r.fault.before(events)
	if early {
		if err := r.save(saved); err != nil {
			return err
		}
		killSelf()
	}
	var lines []entry
	for _, ev := range events {
		line := entry{Event: &ev}
		if r.saves == savesWithEvent && !ev.Is(engine.Initial) {
			line.Saved = &engine.Checkpoint{Store: r.saved.Store, Revision: ev.Revision}
		}
		lines = append(lines, line)
		r.handled++
		r.last = r.last || ev.Type != engine.Bookmark && ev.Object.Value.Text == lastText
		r.done = r.last && !ev.Is(engine.Initial)
	}
	if err := r.write(lines...); err != nil || at == 0 {
		return err
	}
	if n := len(lines); n > 0 && lines[n-1].Saved != nil {
		r.saved = *lines[n-1].Saved
	}
	r.fault.unsaved()
	if err := r.save(saved); err != nil {
		return err
	}
	r.fault.saved()
	return nil
}

// save saves a checkpoint the consumer's way.
func (r *running) save(c engine.Checkpoint) error {
	if r.saves == savesNothing || c == r.saved {
		return nil
	}
	r.saved = c
	if r.saves != savesInFile {
		return r.write(entry{Saved: &c})
	}
	return replaceFile(r.file(r.dir), []byte(c.String()))
}
