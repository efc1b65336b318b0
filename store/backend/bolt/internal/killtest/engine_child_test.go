package killtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/killtest"
)

// thing is what the engines keep.
type thing struct{ Name, Text, Color, Size string }

// String returns the value as a child says it.
func (v thing) String() string { return v.Text + " " + v.Color + " " + v.Size }

func things() engine.Config[thing] {
	return engine.Config[thing]{
		BookmarkPeriod: 10 * time.Millisecond, FreshnessTimeout: 3 * time.Minute,
		Key:    func(v thing) string { return v.Name },
		Labels: func(v thing) labels.Set { return labels.Set{"color": v.Color} },
		Fields: engine.Fields[thing]{"size": func(v thing) string { return v.Size }},
	}
}

const (
	// engineWriters write at most lifeWrites in a life.
	engineWriters, lifeWrites = 16, 2000
	// keptWrites is how much history is left when the child compacts. It is more than are
	// written in a life, so that the parent finds all of them.
	keptWrites = lifeWrites + 1000
)

// openThings opens a file. The first change of a new one is judge.First+1.
func openThings(dir string) (*bolt.File, *bolt.Backend, error) {
	f, err := bolt.Open(filepath.Join(dir, "state.db"), bolt.Options{LockTimeout: 10 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	cfg := things()
	b, err := bolt.New(f, "things", bolt.Config{Schema: cfg.Schema(), FirstRevision: judge.First})
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, b, nil
}

// openEngine opens a file with an engine over it, and returns what closes both.
func openEngine(dir string) (*engine.Engine[thing], func() error, error) {
	f, b, err := openThings(dir)
	if err != nil {
		return nil, nil, err
	}
	cfg := things()
	cfg.Backend = b
	e, err := engine.New(cfg)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return e, func() error { return errors.Join(e.Close(), f.Close()) }, nil
}

// engineVariable makes a process a child with an engine; it has the child's arguments.
const engineVariable = "WATCHMILL_KILLTEST_ENGINE"

// engineMain runs the child if this process is one; otherwise it returns.
func engineMain() {
	words := strings.Split(os.Getenv(engineVariable), "|")
	if len(words) != 3 {
		return
	}
	life, _ := strconv.Atoi(words[1])
	err := live(words[0], life, parseFault(words[2]), killtest.NewLines(os.Stdout))
	fmt.Println("failed:", err)
	os.Exit(1)
}

// live writes through an engine, with consumers, until the process is killed. It returns
// only with an error. It says of each write, before and after it:
//
//	try KEY 0 TEXT            it begins; text is "" for a deletion
//	put KEY REVISION TEXT     it is acknowledged
//	not KEY 0 TEXT            it is refused
func live(dir string, life int, f fault, out *killtest.Lines) error {
	e, _, err := openEngine(dir)
	if err != nil {
		return err
	}
	errs := make(chan error, engineWriters+16)
	for _, c := range consumers() {
		r, err := c.run(dir, life, e, f)
		if err != nil {
			return err
		}
		go func() { errs <- r.consume(context.Background()) }()
	}
	for id := range engineWriters {
		w := &engineWriter{Engine: e, out: out, life: life, id: id, random: rand.New(rand.NewPCG(uint64(life), uint64(id)))}
		go func() {
			if err := w.run(); err != nil {
				errs <- fmt.Errorf("writer %d: %w", id, err)
			}
		}()
	}
	return <-errs
}

// engineWriter is one that writes through an engine: keys of its own, and keys that all
// write.
type engineWriter struct {
	*engine.Engine[thing]
	out      *killtest.Lines
	life, id int
	random   *rand.Rand
}

func (w *engineWriter) run() error {
	for i := range lifeWrites / engineWriters {
		key := fmt.Sprintf("w%d/%d", w.id, w.random.IntN(3))
		if w.random.IntN(4) == 0 {
			key = fmt.Sprintf("shared/%d", w.random.IntN(6))
		}
		v := thing{
			Name: key, Text: fmt.Sprintf("%d.%d.%d", w.life, w.id, i),
			Color: []string{"red", "blue"}[w.random.IntN(2)], Size: []string{"big", "small"}[w.random.IntN(2)],
		}
		if err := w.write(v); err != nil {
			return err
		}
		if w.id == 0 && i%40 == 39 {
			if err := w.compact(); err != nil {
				return err
			}
		}
	}
	return nil
}

// write creates, updates or deletes an object, and says so.
func (w *engineWriter) write(v thing) error {
	ctx, kind := context.Background(), w.random.IntN(8)
	said := v.String()
	if kind == 0 {
		said = ""
	}
	if err := w.out.Tell(killtest.Line{What: "try", Key: v.Name, Text: said}); err != nil {
		return err
	}
	var o *engine.Object[thing]
	var err error
	switch kind {
	case 0:
		o, err = w.Delete(ctx, v.Name, engine.DeleteOptions{})
	case 1, 2:
		o, err = w.Create(ctx, v)
	default:
		o, err = w.Update(ctx, v.Name, func(thing) (thing, error) { return v, nil }, engine.UpdateOptions{CreateIfMissing: kind == 3})
	}
	switch {
	case err == nil:
		return w.out.Tell(killtest.Line{What: "put", Key: v.Name, Revision: o.Revision, Text: said})
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrConflict):
		return w.out.Tell(killtest.Line{What: "not", Key: v.Name, Text: said})
	}
	return err
}

// compact leaves keptWrites of the history.
func (w *engineWriter) compact() error {
	at := w.Revision()
	if at <= keptWrites {
		return nil
	}
	return w.Compact(context.Background(), at-keptWrites)
}
