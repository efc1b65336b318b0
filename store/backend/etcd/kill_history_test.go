package etcd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// bareWatch is a watch of etcd's own client, directly at the member: its changes are what
// happened below a prefix.
type bareWatch struct {
	*fixture
	running sync.WaitGroup

	mu      sync.Mutex
	changes []change
	now     map[string]thing
}

// change is a write or a deletion.
type change struct {
	at    engine.Revision
	kind  engine.EventType
	value thing // of a deletion the last one
}

func startBareWatch(f *fixture) *bareWatch {
	f.Helper()
	b := &bareWatch{fixture: f, now: map[string]thing{}}
	ctx, stop := context.WithCancel(f.ctx)
	responses := f.raw.Watch(ctx, f.place(""), clientv3.WithPrefix(), clientv3.WithRev(1))
	b.running.Go(func() {
		for resp := range responses {
			b.add(resp)
		}
	})
	f.Cleanup(func() { stop(); b.running.Wait() })
	return b
}

// add adds the changes of a response, in the order of revisions and keys.
func (b *bareWatch) add(resp clientv3.WatchResponse) {
	if err := resp.Err(); err != nil {
		b.Errorf("the bare watch ended: %v", err)
		return
	}
	slices.SortStableFunc(resp.Events, func(a, b *clientv3.Event) int {
		if a.Kv.ModRevision != b.Kv.ModRevision {
			return int(a.Kv.ModRevision - b.Kv.ModRevision)
		}
		return bytes.Compare(a.Kv.Key, b.Kv.Key)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range resp.Events {
		key := string(ev.Kv.Key[len(b.place("")):])
		c := change{at: engine.Revision(ev.Kv.ModRevision), kind: engine.Modified}
		switch {
		case ev.Type == clientv3.EventTypeDelete:
			c.kind, c.value = engine.Deleted, b.now[key]
			delete(b.now, key)
			b.changes = append(b.changes, c)
			continue
		case ev.IsCreate():
			c.kind = engine.Added
		}
		if err := json.Unmarshal(ev.Kv.Value, &c.value); err != nil {
			b.Errorf("%s: %v", ev.Kv.Key, err)
		}
		b.now[key] = c.value
		b.changes = append(b.changes, c)
	}
}

// newest returns the revision of the newest change.
func (b *bareWatch) newest() engine.Revision {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) == 0 {
		return 0
	}
	return b.changes[len(b.changes)-1].at
}

// await waits until all is known up to a revision: as there are later changes, or it is
// that of one.
func (b *bareWatch) await(at engine.Revision) {
	b.Helper()
	require.Eventually(b, func() bool { return b.newest() >= at }, killPatience, tick)
}

// between describes the changes after a revision through another.
func (b *bareWatch) between(after, through engine.Revision) (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.changes {
		if after < c.at && c.at <= through {
			lines = append(lines, describe(c.at, c.kind.String(), c.value))
		}
	}
	return lines
}

// state returns the text of every object.
func (b *bareWatch) state() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	texts := map[string]string{}
	for key, v := range b.now {
		texts[key] = v.Text
	}
	return texts
}

// elsewhere is what the judge takes a revision for that changes nothing below the prefix:
// a change that no watch selects.
const elsewhere = "elsewhere"

// history returns what happened for the judge, whose revisions are one for each change
// and have no gaps.
func (b *bareWatch) history() (*judge.History[thing], *ranks) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := judge.NewHistory(func(a, b thing) bool { return a == b })
	r := &ranks{first: b.changes[0].at, own: map[keyAt]engine.Revision{}}
	next := b.changes
	for at := r.first; len(next) > 0; at++ {
		n := 0
		for ; n < len(next) && next[n].at == at; n++ {
			name := next[n].value.Name
			if next[n].kind == engine.Deleted {
				r.own[keyAt{name, at}] = h.Delete(name)
			} else {
				r.own[keyAt{name, at}] = h.Put(name, next[n].value)
			}
		}
		if next = next[n:]; n == 0 {
			h.Put(elsewhere, thing{Name: elsewhere})
		} else {
			h.Join(n)
		}
		r.last = append(r.last, h.Newest())
	}
	return h, r
}

// ranks translates revisions, which have gaps and are shared, into those of a history.
type ranks struct {
	first engine.Revision
	last  []engine.Revision // of each revision from first on
	own   map[keyAt]engine.Revision
}

// keyAt is where a change was.
type keyAt struct {
	key string
	at  engine.Revision
}

// of returns the rank of all that happened up to a revision.
func (r *ranks) of(at engine.Revision) engine.Revision {
	if at < r.first {
		return judge.First
	}
	return r.last[min(at-r.first, engine.Revision(len(r.last)-1))]
}

// ofKey returns the rank of the change of a key at a revision, or of all that happened up
// to it if there is none.
func (r *ranks) ofKey(key string, at engine.Revision) engine.Revision {
	if own, changed := r.own[keyAt{key, at}]; changed {
		return own
	}
	return r.of(at)
}

// object returns an object with translated revisions.
func (r *ranks) object(o *engine.Object[thing]) *engine.Object[thing] {
	if o == nil {
		return nil
	}
	translated := *o
	translated.Revision, translated.Created = r.ofKey(o.Key, o.Revision), r.ofKey(o.Key, o.Created)
	return &translated
}

// event returns an event with translated revisions.
func (r *ranks) event(ev engine.Event[thing]) engine.Event[thing] {
	if ev.Type == engine.Bookmark {
		ev.Revision = r.of(ev.Revision)
		return ev
	}
	ev.Revision = r.ofKey(ev.Key(), ev.Revision)
	ev.Object, ev.Prev = r.object(ev.Object), r.object(ev.Prev)
	return ev
}

// record returns a record with translated revisions.
func (r *ranks) record(of judge.Record[thing]) *judge.Record[thing] {
	events := make([]engine.Event[thing], len(of.Events))
	for i, ev := range of.Events {
		events[i] = r.event(ev)
	}
	claims := make([]judge.Claim, len(of.Claims))
	for i, c := range of.Claims {
		if claims[i] = c; c.Revision > 0 {
			claims[i].Revision = r.of(c.Revision)
		}
	}
	of.Events, of.Claims = events, claims
	of.Earliest, of.Latest = r.of(of.Earliest), r.last[len(r.last)-1]
	if of.Options.From > 0 {
		of.Options.From = r.of(of.Options.From)
	}
	return &of
}
