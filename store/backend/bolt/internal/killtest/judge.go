package killtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// Judge has what the children of all rounds have printed, and checks the file against it.
type Judge struct {
	path string
	// changes are those that were acknowledged or seen, by revision.
	changes map[store.Revision]change
	// Seen is the newest revision that the watches have delivered.
	Seen store.Revision
	// newest is the newest revision that was found in the file.
	newest store.Revision
	// Acknowledged counts writes in the file that a child has printed, Unacknowledged
	// those that none has.
	Acknowledged, Unacknowledged int
}

// change is the text that a key got, "" for a deletion.
type change struct{ key, text string }

// NewJudge judges the file at path, which is new.
func NewJudge(path string) *Judge {
	return &Judge{path: path, changes: map[store.Revision]change{}, Seen: 1, newest: 1}
}

// Take reads what a child has printed. The last line may be cut off.
func (j *Judge) Take(out io.Reader) error { return ReadLines(out, j.line) }

func (j *Judge) line(line Line) error {
	rev, now := line.Revision, change{line.Key, line.Text}
	if line.What == "put" && rev <= j.newest {
		return fmt.Errorf("revision %d is used twice: the file was at %d", rev, j.newest)
	}
	if known, ok := j.changes[rev]; ok && known != now {
		return fmt.Errorf("revision %d is %q and %q", rev, known, now)
	}
	j.changes[rev] = now
	if line.What == "saw" {
		if rev != j.Seen+1 {
			return fmt.Errorf("the watch saw revision %d after %d", rev, j.Seen)
		}
		j.Seen = rev
	}
	return nil
}

// Round opens the file that a child has left, and checks it.
func (j *Judge) Round() error {
	f, err := bolt.Open(j.path, bolt.Options{LockTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := bolt.New(f, typeName, config())
	if err != nil {
		return err
	}
	return j.judge(b)
}

func (j *Judge) judge(b *bolt.Backend) error {
	ctx := context.Background()
	rev, err := b.Revision(ctx)
	if err != nil {
		return err
	}
	for told, c := range j.changes {
		if told > rev {
			return fmt.Errorf("lost: %s=%q at revision %d, the file is at %d", c.key, c.text, told, rev)
		}
	}
	if rev < j.newest {
		return fmt.Errorf("the file was at revision %d and is at %d", j.newest, rev)
	}
	found, err := j.resume(ctx, b, rev)
	if err != nil {
		return err
	}
	return j.state(ctx, b, rev, found)
}

// resume watches from the file's newest revision in the previous round, and compares each
// event with what was printed. If the child wrote more than it keeps, it watches from the
// oldest revision that is left, which compaction raises meanwhile.
func (j *Judge) resume(ctx context.Context, b *bolt.Backend, rev store.Revision) (map[store.Revision]change, error) {
	for {
		oldest, err := b.Compacted(ctx)
		if err != nil {
			return nil, err
		}
		events, err := Events(ctx, b, max(oldest, min(j.newest, j.Seen)), rev)
		if errors.Is(err, store.ErrExpired) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found := map[store.Revision]change{}
		for _, ev := range events {
			found[ev.Revision] = change{ev.Key(), textOf(ev)}
		}
		return found, j.compare(found)
	}
}

// Events returns the changes after a revision, through another, as a watch delivers them.
func Events(ctx context.Context, b *bolt.Backend, after, through store.Revision) (found []store.Event, err error) {
	notified := make(chan struct{}, 1)
	w, err := b.Watch(ctx, backend.WatchOptions{From: after, Notify: func() {
		select {
		case notified <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	for at := after; at < through; {
		batch, err := w.Next(1000)
		if err != nil {
			return nil, err
		}
		for _, ev := range batch.Events {
			if at++; ev.Revision != at {
				return nil, fmt.Errorf("after revision %d the file has %d", at-1, ev.Revision)
			}
			found = append(found, ev)
		}
		if len(batch.Events) == 0 && at < through {
			<-notified
		}
	}
	return found, nil
}

// compare compares what was found in the file with what was printed.
func (j *Judge) compare(found map[store.Revision]change) error {
	for at, got := range found {
		told, ok := j.changes[at]
		switch {
		case ok && told != got:
			return fmt.Errorf("revision %d is %q, and was told to be %q", at, got, told)
		case ok:
			j.Acknowledged++
		default:
			j.Unacknowledged++
		}
	}
	return nil
}

// state compares the newest state with the last change of each key that was found or
// printed.
func (j *Judge) state(ctx context.Context, b *bolt.Backend, rev store.Revision, found map[store.Revision]change) error {
	maps.Copy(j.changes, found)
	last := map[string]store.Revision{}
	for at, c := range j.changes {
		last[c.key] = max(last[c.key], at)
	}
	list, err := b.List(ctx, backend.ListOptions{})
	if err != nil {
		return err
	}
	exists := map[string]bool{}
	for _, o := range list.Items {
		exists[o.Key] = true
		got := change{o.Key, store.As[backendtest.Item](o).Value.Text}
		if told, ok := j.changes[o.Revision]; ok && told != got || last[o.Key] > o.Revision {
			return fmt.Errorf("%q is %q at revision %d, and was told to be %q at %d", o.Key, got.text, o.Revision, j.changes[last[o.Key]].text, last[o.Key])
		}
	}
	for key, at := range last {
		if gone := j.changes[at].text == ""; gone == exists[key] {
			return fmt.Errorf("%q was told to be %q at revision %d: it is there: %t", key, j.changes[at].text, at, exists[key])
		}
	}
	for at := range j.changes { // what is older than the state needs is known to be so
		if at <= j.Seen && last[j.changes[at].key] != at {
			delete(j.changes, at)
		}
	}
	j.newest = rev
	oldest, err := b.Compacted(ctx)
	j.Seen = max(j.Seen, oldest)
	return err
}
