package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
)

// thing is what the queues of the tests hold. It is written name=value.
type thing struct{ Name, Value string }

func (o thing) String() string { return o.Value }

var errNameless = errors.New("a thing needs a name")

func thingKey(o thing) (string, error) {
	if o.Name == "" {
		return "", errNameless
	}
	return o.Name, nil
}

func parseThings(text string) []thing {
	var things []thing
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		things = append(things, thing{name, value})
	}
	return things
}

// known is a KnownObjects with a fixed order.
type known struct{ things []thing }

func (k *known) ListKeys() []string {
	var keys []string
	for _, o := range k.things {
		keys = append(keys, o.Name)
	}
	return keys
}

// GetByKey does not find a thing without a value, though it is listed.
func (k *known) GetByKey(key string) (thing, bool) {
	i := slices.IndexFunc(k.things, func(o thing) bool { return o.Name == key })
	if i < 0 || k.things[i].Value == "" {
		return thing{}, false
	}
	return k.things[i], true
}

// fifo is what the three queues have in common.
type fifo interface {
	Add(thing) error
	Update(thing) error
	Delete(thing) error
	Replace([]thing, store.Revision) error
	Resync() error
	Len() int
	HasSynced() bool
	Close()
}

// fifoScenario runs a scenario on one queue. Its verbs are the queue's methods;
// things are given as the input. Everything that leaves the queue is printed.
type fifoScenario struct {
	queue fifo
	known *known
	// pop pops once, or in a batch, and returns what came.
	pop, batch func(ctx context.Context) (string, error)
	tombstone  func(queue.Deleted[thing]) error
	bookmark   func(store.Revision) error
}

// TestFIFO_Scenarios runs the texts in testdata/queues, a folder for each queue.
func TestFIFO_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/queues", func(t *testing.T, path string) {
		var s fifoScenario
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				s = newFIFOScenario(t, d)
				return ""
			}
			return s.run(t, d)
		})
	})
}

func newFIFOScenario(t *testing.T, d *datadriven.TestData) fifoScenario {
	k := &known{parseThings(d.Input)}
	var objects queue.KnownObjects[thing]
	if d.HasArg("known") {
		objects = k
	}
	switch kind := d.CmdArgs[0].Key; kind {
	case "fifo":
		q, err := queue.NewFIFO(thingKey)
		require.NoError(t, err)
		return fifoScenario{queue: q, pop: popThing(q)}
	case "delta":
		cfg := queue.DeltaFIFOConfig[thing]{Key: thingKey, Known: objects, ReplaceAsSync: d.HasArg("as-sync")}
		d.MaybeScanArgs(t, "max", &cfg.MaxDeltas)
		q, err := queue.NewDeltaFIFO(cfg)
		require.NoError(t, err)
		return fifoScenario{queue: q, known: k, pop: popDeltas(q), tombstone: q.DeleteTombstone}
	case "real":
		cfg := queue.RealFIFOConfig[thing]{Key: thingKey, Known: objects}
		d.MaybeScanArgs(t, "batch", &cfg.BatchSize)
		q, err := queue.NewRealFIFO(cfg)
		require.NoError(t, err)
		return fifoScenario{queue: q, known: k, pop: popDelta(q), batch: popBatch(q), tombstone: q.DeleteTombstone, bookmark: q.Bookmark}
	default:
		d.Fatalf(t, "unknown queue %q", kind)
		return fifoScenario{}
	}
}

func (s *fifoScenario) run(t *testing.T, d *datadriven.TestData) string {
	var rev int
	d.MaybeScanArgs(t, "rev", &rev)
	each := func(f func(thing) error) string {
		for _, o := range parseThings(d.Input) {
			if err := f(o); err != nil {
				return err.Error() + "\n"
			}
		}
		return ""
	}
	switch d.Cmd {
	case "add":
		return each(s.queue.Add)
	case "update":
		return each(s.queue.Update)
	case "delete":
		return each(s.queue.Delete)
	case "lost": // deletions that were not seen, with the last state if it has a value
		return each(func(o thing) error {
			return s.tombstone(queue.Deleted[thing]{Key: o.Name, Last: o, Known: o.Value != "", Stale: true})
		})
	case "replace":
		return printErr(s.queue.Replace(parseThings(d.Input), store.Revision(rev)))
	case "bookmark":
		return printErr(s.bookmark(store.Revision(rev)))
	case "resync":
		return printErr(s.queue.Resync())
	case "close":
		s.queue.Close()
		return ""
	case "synced":
		return strconv.FormatBool(s.queue.HasSynced()) + "\n"
	case "pop":
		return s.drain(d, s.pop)
	case "batch":
		return s.drain(d, s.batch)
	}
	d.Fatalf(t, "unknown verb %q", d.Cmd)
	return ""
}

// drain pops as often as the argument says, or until nothing is queued.
func (s *fifoScenario) drain(d *datadriven.TestData, pop func(context.Context) (string, error)) string {
	var b strings.Builder
	times := 1 << 20
	if len(d.CmdArgs) > 0 {
		times, _ = strconv.Atoi(d.CmdArgs[0].Key)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for ; times > 0; times-- {
		if s.queue.Len() == 0 {
			b.WriteString("nothing queued\n")
			break
		}
		what, err := pop(ctx)
		b.WriteString(what + printErr(err))
	}
	return b.String()
}

func printErr(err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	return ""
}

func printPop(what string, initial bool) string {
	if initial {
		what += " (initial)"
	}
	return what + "\n"
}

func popThing(q *queue.FIFO[thing]) func(context.Context) (string, error) {
	return func(ctx context.Context) (what string, err error) {
		err = q.Pop(ctx, func(o thing, initial bool) error {
			what = printPop(o.Name+": "+o.Value, initial)
			return nil
		})
		return what, err
	}
}

func popDeltas(q *queue.DeltaFIFO[thing]) func(context.Context) (string, error) {
	return func(ctx context.Context) (what string, err error) {
		err = q.Pop(ctx, func(ds queue.Deltas[thing], initial bool) error {
			what = printPop(ds.Key()+": "+ds.String(), initial)
			return nil
		})
		return what, err
	}
}

func printDelta(d queue.Delta[thing]) string {
	if d.Key == "" {
		return d.String()
	}
	return d.Key + ": " + d.String()
}

func popDelta(q *queue.RealFIFO[thing]) func(context.Context) (string, error) {
	return func(ctx context.Context) (what string, err error) {
		err = q.Pop(ctx, func(d queue.Delta[thing], initial bool) error {
			what = printPop(printDelta(d), initial)
			return nil
		})
		return what, err
	}
}

func popBatch(q *queue.RealFIFO[thing]) func(context.Context) (string, error) {
	return func(ctx context.Context) (what string, err error) {
		err = q.PopBatch(ctx, func(batch []queue.Delta[thing], initial bool) error {
			var parts []string
			for _, d := range batch {
				parts = append(parts, printDelta(d))
			}
			what = printPop(fmt.Sprintf("[%s]", strings.Join(parts, "; ")), initial)
			return nil
		})
		return what, err
	}
}
