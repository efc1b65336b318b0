package actors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

// billing is a wake actor that its user has given a name.
type billing struct {
	actors.WakeBox
	pause *pause
}

func (b *billing) Woken(*actors.Context) bool { b.pause.turn(); return false }
func (b *billing) Name() string               { return "billing" }

func TestWatchdog_NamesAWakerAsItsUserDoes(t *testing.T) {
	var failed failures
	clock := clock.NewVirtual(start)
	// One worker: with two, the parent's turn might last until the clock is advanced.
	sys := newSystem(t, actors.SystemConfig{Workers: 1, Clock: clock, OnFailure: failed.add})
	parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent"}, actors.Options{})
	b := &billing{pause: newPause(t)}
	spawned := make(chan error, 1)
	parent.Tell(run("", func(ctx *actors.Context) { spawned <- actors.SpawnWake(ctx, b, &b.WakeBox, nil) }))
	require.NoError(t, <-spawned)
	b.Wake()
	<-b.pause.entered
	clock.Advance(time.Second)
	clock.Advance(time.Second / 4)
	require.Equal(t, "parent/"+b.ID().String()+" (billing): "+held, failed.take())
	b.pause.release()
}

// nameless is a wake actor that cannot say what it is called.
type nameless struct{ actors.WakeBox }

func (*nameless) Woken(*actors.Context) bool { panic("boom") }
func (*nameless) Name() string               { panic("no name") }

func TestFailure_OfAWakerWhoseNamePanics(t *testing.T) {
	var failed failures
	sys, seeded := newSeeded(t, actors.SystemConfig{OnFailure: failed.add})
	parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent"}, actors.Options{})
	n := new(nameless)
	parent.Tell(run("", func(ctx *actors.Context) {
		require.NoError(t, actors.SpawnWake(ctx, n, &n.WakeBox, nil))
		n.Wake()
	}))
	seeded.Run()
	require.Equal(t, "parent/"+n.ID().String()+": boom: Stop", failed.take())
}

func TestMailboxes_ShowWhatWaits(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 2})
	busy := spawnProbe(sys, &probe{journal: new(journal), name: "busy"}, actors.Options{Capacity: 10})
	idle := spawnProbe(sys, &probe{journal: new(journal), name: "idle"}, actors.Options{})
	settle(t, idle)
	p := newPause(t)
	busy.Tell(p.message())
	<-p.entered
	for range 3 {
		busy.Tell(run("", func(*actors.Context) {}))
	}
	boxes := sys.Mailboxes()
	require.Len(t, boxes, 2)
	require.Equal(t, actors.MailboxInfo{Name: "busy", Queued: 3, Capacity: 10, Running: true}, boxes[0])
	require.Equal(t, "idle", boxes[1].Name)
	require.Zero(t, boxes[1].Queued)
	p.release()
}

func TestMailboxes_CountTheWakersThatLive(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent"}, actors.Options{})
	first, second := new(nameless), new(nameless)
	parent.Tell(run("", func(ctx *actors.Context) {
		require.NoError(t, actors.SpawnWake(ctx, first, &first.WakeBox, nil))
		require.NoError(t, actors.SpawnWake(ctx, second, &second.WakeBox, nil))
	}))
	seeded.Run()
	require.Equal(t, 2, sys.Mailboxes()[0].Wakers)
	first.Stop()
	seeded.Run()
	require.Equal(t, 1, sys.Mailboxes()[0].Wakers)
}

// So a page that shows them again and again does not exchange their rows.
func TestMailboxes_OfOneNameKeepTheirOrder(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	for capacity := 1; capacity <= 5; capacity++ {
		spawnProbe(sys, &probe{journal: new(journal), name: "pods"}, actors.Options{Capacity: capacity})
	}
	for range 20 {
		for i, box := range sys.Mailboxes() {
			require.Equal(t, i+1, box.Capacity)
		}
	}
}

func TestNames_AreSorted(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	for _, name := range []string{"e", "b", "g", "a", "d", "f", "c"} {
		spawnProbe(sys, &probe{journal: new(journal), name: name}, actors.Options{})
	}
	seeded.Run()
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g"}, sys.Names())
}
