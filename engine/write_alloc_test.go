package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// A write that comes alone allocates its object and key, the map of its labels (which the
// configuration makes, in two parts), and the snapshot that shows it. In addition, every
// 64th makes a state, and the tree nodes that it shares are copied when they change.
func TestPut_AllocatesLittleOnItsWayToOneWatch(t *testing.T) {
	executor := actors.NewSeeded(1)
	c := thingConfig()
	c.Host = hostFor(t, engine.HostConfig{Clock: clock.NewVirtual(epoch), Executor: executor, Seed: 1})
	c.Key, c.Index = func(o thing) string { return "things/" + o.Key }, []string{"node"}
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	seen, written := 0, 0
	_, err = e.Handle(t.Context(), engine.WatchOptions{OnPool: true}, func(engine.Event[thing]) { seen++ })
	require.NoError(t, err)
	things := make([]thing, 100)
	for i := range things {
		things[i] = thing{Key: fmt.Sprintf("thing-%03d", i), App: "web", Node: fmt.Sprintf("node-%03d", i)}
	}
	write := func() {
		o := things[written%len(things)]
		written++
		o.N = written
		if _, err := e.Put(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		executor.Run()
	}
	for range 1000 {
		write()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(1000, write), 6.0)
	require.Equal(t, written, seen)
}
