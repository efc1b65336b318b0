package backend_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// TestStorage_Scenarios runs testdata/storage/*.txt: each shows all that Storage does below for
// one update or deletion, and what the user's functions get to see. The verbs:
//
//	create p image=v1          create the pod p
//	rival p image=v2           another writer updates it (delete: deletes it, create: creates it)
//	remember p                 the cache has p as it is now, and suggests it from now on
//	forget                     the cache suggests nothing
//	update p image=v3          GuaranteedUpdate
//	delete p                   Delete
//
// Update and delete take: refuse=IMAGE (the function fails on that image),
// uid=N, revision=N (preconditions), create (CreateIfMissing), and
// race=IMAGE (a rival writes that image right before the first write).
func TestStorage_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/storage", func(t *testing.T, path string) {
		s := newScenario(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.log.Reset()
			s.run(t, d)
			return s.log.String()
		})
	})
}

// scenario is a Storage whose every call below is written down.
type scenario struct {
	storage *backend.Storage
	below   *memory.Backend
	cached  *store.Object
	race    string
	log     strings.Builder
}

func newScenario(t *testing.T) *scenario {
	f := newFixture(t)
	s := &scenario{below: f.below.Backend}
	s.storage = backend.NewStorage(logged{s.below, s}, podSchema())
	return s
}

// logged is the backend below a scenario's Storage.
type logged struct {
	*memory.Backend
	s *scenario
}

func (l logged) Get(ctx context.Context, key string) (*store.Object, error) {
	o, err := l.Backend.Get(ctx, key)
	l.s.note("  read live: %s", outcome(o, err))
	return o, err
}

func (l logged) Put(ctx context.Context, draft, prev *store.Object, opts backend.PutOptions) (*store.Object, error) {
	l.s.interfere(draft.Key)
	o, err := l.Backend.Put(ctx, draft, prev, opts)
	l.s.note("  write %s over revision %d: %s", imageOf(draft), revisionOf(prev), outcome(o, err))
	return o, err
}

func (l logged) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	l.s.interfere(prev.Key)
	o, err := l.Backend.Remove(ctx, prev)
	l.s.note("  remove revision %d: %s", prev.Revision, outcome(o, err))
	return o, err
}

func (s *scenario) note(format string, args ...any) { fmt.Fprintf(&s.log, format+"\n", args...) }

// interfere is the rival's write in a race.
func (s *scenario) interfere(key string) {
	if image := s.race; image != "" {
		s.race = ""
		s.note("  rival: %s", s.rival(key, image))
	}
}

// rival updates, creates or deletes the pod behind Storage's back.
func (s *scenario) rival(key, image string) string {
	prev, _ := s.below.Get(context.Background(), key)
	if image == "delete" {
		return outcome(s.below.Remove(context.Background(), prev))
	}
	return outcome(s.below.Put(context.Background(), drafted(key, image), prev, backend.PutOptions{}))
}

// revisionOf returns an object's revision; zero if there is none.
func revisionOf(o *store.Object) store.Revision {
	if o == nil {
		return 0
	}
	return o.Revision
}

// outcome prints an object or the kind of an error.
func outcome(o *store.Object, err error) string {
	if failed := (*store.PreconditionError)(nil); errors.As(err, &failed) {
		return failed.Error()
	}
	for _, kind := range []error{store.ErrNotFound, store.ErrConflict, store.ErrExists, errRefused} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s@%d", imageOf(o), o.Revision)
}

// run executes one command.
func (s *scenario) run(t *testing.T, d *datadriven.TestData) {
	if d.Cmd == "forget" {
		s.cached = nil
		return
	}
	key, a := d.CmdArgs[0].Key, readArgs(t, d)
	ctx := context.Background()
	s.race = a.race
	switch d.Cmd {
	case "create":
		s.note("%s", outcome(s.below.Put(ctx, drafted(key, a.image), nil, backend.PutOptions{})))
	case "rival":
		s.note("%s", s.rival(key, a.image))
	case "remember":
		s.cached, _ = s.below.Get(ctx, key)
		s.note("%s", outcome(s.cached, nil))
	case "update":
		s.note("%s", outcome(s.storage.GuaranteedUpdate(ctx, key, s.update(key, a), backend.UpdateOptions{
			Preconditions: a.preconditions, Suggestion: s.cached, CreateIfMissing: a.create,
		})))
	case "delete":
		s.note("%s", outcome(s.storage.Delete(ctx, key, backend.DeleteOptions{
			Preconditions: a.preconditions, Suggestion: s.cached, Validate: s.validate(a),
		})))
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
}

// arguments are what a command may take.
type arguments struct {
	image, refuse, race string
	create              bool
	preconditions       backend.Preconditions
}

func readArgs(t *testing.T, d *datadriven.TestData) (a arguments) {
	var uid, revision uint64
	d.MaybeScanArgs(t, "image", &a.image)
	d.MaybeScanArgs(t, "refuse", &a.refuse)
	d.MaybeScanArgs(t, "race", &a.race)
	d.MaybeScanArgs(t, "uid", &uid)
	d.MaybeScanArgs(t, "revision", &revision)
	a.create = d.HasArg("create")
	a.preconditions = backend.Preconditions{UID: store.Revision(uid), Revision: store.Revision(revision)}
	return a
}

func (s *scenario) update(key string, a arguments) backend.UpdateFunc {
	return func(_ context.Context, current *store.Object) (*store.Object, error) {
		if current == nil {
			s.note("  update sees nothing")
			return newPod(key, a.image), nil
		}
		s.note("  update sees %s", outcome(current, nil))
		if imageOf(current) == a.refuse {
			return nil, errRefused
		}
		return newPod(key, a.image), nil
	}
}

func (s *scenario) validate(a arguments) backend.ValidateFunc {
	return func(_ context.Context, current *store.Object) error {
		s.note("  validate sees %s", outcome(current, nil))
		if imageOf(current) == a.refuse {
			return errRefused
		}
		return nil
	}
}
