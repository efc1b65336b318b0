package bolt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// fixture is a file with items in it, on a clock that the test moves.
type fixture struct {
	testing.TB
	ctx   context.Context
	path  string
	clock *clock.Virtual
	opts  bolt.Options
	cfg   bolt.Config
	wrap  func(journal.Journal) journal.Journal
	disk  *journaltest.Faulty // what newFaulty has put in between
	file  *bolt.File
	*bolt.Backend
}

// newFixture opens a new file; its items begin at revision 1.
func newFixture(t testing.TB, change ...func(f *fixture)) *fixture {
	t.Helper()
	f := &fixture{
		TB: t, ctx: context.Background(), path: filepath.Join(t.TempDir(), "state.db"), clock: clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)),
		opts: bolt.Options{LockTimeout: time.Minute}, // for a file that is closed in the background
		cfg:  bolt.Config{Schema: backendtest.Schema(), FirstRevision: 1},
	}
	for _, c := range change {
		c(f)
	}
	f.open()
	t.Cleanup(f.close)
	return f
}

func (f *fixture) open() {
	f.Helper()
	if f.opts.Clock == nil {
		f.opts.Clock = f.clock
	}
	var err error
	if f.wrap != nil {
		f.file, err = bolt.OpenOver(f.path, f.opts, f.wrap)
	} else {
		f.file, err = bolt.Open(f.path, f.opts)
	}
	require.NoError(f, err)
	f.Backend, err = bolt.New(f.file, "items", f.cfg)
	require.NoError(f, err)
}

func (f *fixture) close() {
	f.Helper()
	require.NoError(f, f.file.Close())
	require.Zero(f, f.clock.Pending(), "a closed file leaves no timer")
}

// reopen restarts, after d.
func (f *fixture) reopen(d time.Duration) {
	f.Helper()
	f.close()
	f.clock.Advance(d)
	f.open()
}

func draft(key, text string) *store.Object {
	return backendtest.Draft(backendtest.Value{Key: key, Text: text})
}

func textOf(o *store.Object) string { return store.As[backendtest.Item](o).Value.Text }

// put writes text under key, whatever is there.
func (f *fixture) put(key, text string) *store.Object {
	f.Helper()
	return f.putFor(0, key, text)
}

func (f *fixture) putFor(ttl time.Duration, key, text string) *store.Object {
	f.Helper()
	prev, err := f.Get(f.ctx, key)
	if err != nil {
		require.ErrorIs(f, err, store.ErrNotFound)
	}
	o, err := f.Put(f.ctx, draft(key, text), prev, backend.PutOptions{TTL: ttl})
	require.NoError(f, err)
	return o
}

func (f *fixture) remove(key string) *store.Object {
	f.Helper()
	o, err := f.Get(f.ctx, key)
	require.NoError(f, err)
	gone, err := f.Remove(f.ctx, o)
	require.NoError(f, err)
	return gone
}

func (f *fixture) emit(key, text string) *store.Object {
	f.Helper()
	o, err := f.Emit(f.ctx, draft(key, text))
	require.NoError(f, err)
	return o
}

// flicker updates one object n times.
func (f *fixture) flicker(key string, n int) (last *store.Object) {
	f.Helper()
	for i := range n {
		last = f.put(key, fmt.Sprint(i))
	}
	return last
}

func (f *fixture) revision() store.Revision {
	f.Helper()
	rev, err := f.Revision(f.ctx)
	require.NoError(f, err)
	return rev
}

func (f *fixture) compacted() store.Revision {
	f.Helper()
	rev, err := f.Compacted(f.ctx)
	require.NoError(f, err)
	return rev
}

// list returns the objects of a list as text.
func (f *fixture) list(opts backend.ListOptions) []string {
	f.Helper()
	l, err := f.List(f.ctx, opts)
	require.NoError(f, err)
	texts := []string{}
	for _, o := range l.Items {
		texts = append(texts, describe(o))
	}
	return texts
}

func describe(o *store.Object) string {
	if o == nil {
		return "-"
	}
	text := fmt.Sprintf("%s=%s@%d created %d %v %v written %s", o.Key, textOf(o), o.Revision, o.Created, o.Labels, o.Fields, o.Written.UTC().Format(time.DateTime))
	if !o.Expires.IsZero() {
		text += " expires " + o.Expires.UTC().Format(time.DateTime)
	}
	return text
}

// tell describes an event with its objects.
func tell(ev store.Event) string {
	return fmt.Sprintf("%v: %s after %s", ev, describe(ev.Object), describe(ev.Prev))
}

// follower is a watch that can wait for what comes.
type follower struct {
	*fixture
	backend.Watcher
	notified chan struct{}
	through  store.Revision
}

func (f *fixture) watch(from store.Revision, prefix string) *follower {
	f.Helper()
	return f.watchBy(backend.WatchOptions{From: from, Prefix: prefix})
}

func (f *fixture) watchBy(opts backend.WatchOptions) *follower {
	f.Helper()
	fo := &follower{fixture: f, notified: make(chan struct{}, 1)}
	opts.Notify = func() {
		select {
		case fo.notified <- struct{}{}:
		default:
		}
	}
	var err error
	fo.Watcher, err = f.Watch(f.ctx, opts)
	require.NoError(f, err)
	return fo
}

// read returns the events up to a revision, told, in batches of up to n.
func (fo *follower) read(through store.Revision, n int) (told []string) {
	fo.Helper()
	for _, ev := range fo.events(through, n) {
		told = append(told, tell(ev))
	}
	return told
}

// events returns the events up to a revision, in batches of up to n.
func (fo *follower) events(through store.Revision, n int) (events []store.Event) {
	fo.Helper()
	for fo.through < through {
		batch, err := fo.Next(n)
		require.NoError(fo, err)
		require.LessOrEqual(fo, len(batch.Events), n)
		if fo.through != 0 {
			require.Equal(fo, fo.through, batch.After)
		}
		fo.through = batch.Through
		events = append(events, batch.Events...)
		if len(batch.Events) == 0 && fo.through < through {
			select {
			case <-fo.notified:
			case <-time.After(time.Minute):
				require.Fail(fo, "not notified", "at revision %d of %d", fo.through, through)
			}
		}
	}
	return events
}

// wait returns the error that ends the watch.
func (fo *follower) wait() error {
	fo.Helper()
	for {
		batch, err := fo.Next(100)
		if err != nil {
			return err
		}
		if len(batch.Events) == 0 {
			select {
			case <-fo.notified:
			case <-time.After(time.Minute):
				require.Fail(fo, "not notified")
			}
		}
	}
}

// emptyWindow makes history go out of memory.
func (f *fixture) emptyWindow() { f.clock.Advance(time.Hour) }
