package etcd_test

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// killPatience is how long the test waits for what must happen. A machine may be slow.
const killPatience = 3 * time.Minute

// rounds is how many rounds of faults there are: WATCHMILL_KILL_ROUNDS for the long form.
func rounds(t *testing.T, short int) int {
	text := os.Getenv("WATCHMILL_KILL_ROUNDS")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	require.Positive(t, n)
	return n
}

// killTest is a member that two engines write to, each through a proxy of its own.
//
//	clients ─▶ engine 0 ─▶ proxy ─┐              killed
//	             │ watches        ├─▶ member ─▶ bare: a watch of etcd's client
//	clients ─▶ engine 1 ─▶ proxy ─┘     ▲
//	                     cut, slow,     └── foreign: two keys at one revision
//	                     half open
type killTest struct {
	*fixture
	members []string // the addresses
	// patience is how long a call may take.
	patience time.Duration
	member   *etcdtest.Member
	proxies  [2]*etcdtest.Proxy
	engines  [2]*process
	bare     *bareWatch
	calls    *calls
	round    atomic.Int64 // the number of the round
	clients  sync.WaitGroup
}

// A member is killed and its connections are cut, slowed and half opened, with
// compactions meanwhile, while the engines of two processes write the same objects:
// calls are linearizable, what was acknowledged is there, what is uncertain was done at
// most once, watches keep what they promise, and a saved revision is resumed from at
// another process's engine.
func TestKill_EnginesOfTwoProcesses(t *testing.T) {
	n := rounds(t, 2)
	x := newKillTest(t)
	stop := x.runClients()
	resumed := 0
	for round := range n {
		x.round.Store(int64(round))
		begun := time.Now()
		x.faults(round)
		resumed += x.resume(round)
		t.Logf("round %d took %v", round+1, time.Since(begun).Round(time.Second/10))
	}
	stop()
	t.Logf("%d rounds: %d events after resuming, twice", n, resumed)
	x.judge()
}

func newKillTest(t *testing.T) *killTest {
	t.Helper()
	x := &killTest{member: etcdtest.StartMember(t), patience: 3 * time.Second}
	var through [2][]string
	for i := range x.proxies {
		x.proxies[i] = etcdtest.StartProxy(t, x.member.Endpoint)
		through[i] = []string{x.proxies[i].Endpoint}
	}
	x.start(t, []string{x.member.Endpoint}, through)
	return x
}

// start starts the engines and all watches. Each engine reaches the members through its endpoints.
func (x *killTest) start(t *testing.T, members []string, through [2][]string) {
	t.Helper()
	x.members, x.calls = members, newCalls()
	x.fixture = &fixture{TB: t, ctx: context.Background(), raw: etcdtest.Client(t, members...), cfg: etcd.Config{Prefix: newPrefix()}}
	x.bare = startBareWatch(x.fixture)
	for i := range x.engines {
		x.engines[i] = x.newProcess(i, through[i])
	}
	for _, p := range x.engines {
		p.watchAll()
	}
}

// runClients has clients read and write until the returned function, which waits for them, is called.
func (x *killTest) runClients() (stop func()) {
	ctx, cancel := context.WithCancel(x.ctx)
	for id := range 4 {
		x.clients.Go(func() { x.client(ctx, id) })
	}
	x.clients.Go(func() { x.foreignWrites(ctx) })
	stop = func() { cancel(); x.clients.Wait() }
	x.Cleanup(stop)
	return stop
}

// judge makes a last write, and judges all that was called and received.
func (x *killTest) judge() {
	x.Helper()
	x.bare.await(x.finish())
	x.Logf("%d calls, %d writes acknowledged, %d unknown, of which %d were done",
		len(x.calls.all), len(x.calls.acked), len(x.calls.maybe), x.judgeWrites())
	x.judgeWatches()
	for _, p := range x.engines {
		require.Equal(x, x.bare.state(), p.values())
	}
	begun := time.Now()
	result, _ := porcupine.CheckOperationsVerbose(register.ToModel(), x.calls.all, killPatience)
	require.Equal(x, porcupine.Ok, result)
	x.Logf("porcupine took %v", time.Since(begun).Round(time.Millisecond))
}

// faults are those of a round, each while there are writes. One process has a bad
// connection while the other goes on, in turns.
func (x *killTest) faults(round int) {
	off := round % 2
	on, proxy := 1-off, x.proxies[off]
	x.writes(off, 3)
	x.writes(on, 3)

	at := x.bare.newest()
	x.member.Kill()
	x.clients.Go(func() { x.compact(round, x.engines[on], at) }) // it waits for the member
	x.member.Restart()
	x.writes(off, 3)
	x.writes(on, 3)

	proxy.Cut()
	x.writes(on, 5)
	x.compact(round+1, x.engines[on], x.bare.newest())
	x.writes(on, 2)
	proxy.Heal()
	x.writes(off, 3)

	proxy.Delay(20 * time.Millisecond)
	x.writes(off, 3)
	x.compact(round, x.engines[on], x.bare.newest())
	x.writes(off, 2)
	proxy.Delay(0)

	attempts := x.engines[off].attempts()
	if round/2%2 == 0 {
		proxy.Mute() // requests take effect
	} else {
		proxy.BlackHole()
	}
	x.writes(on, 5)
	x.compact(round+1, x.engines[on], x.bare.newest())
	x.engines[off].awaitAttempt(attempts) // it has found out by itself
	proxy.Heal()
	x.writes(off, 3)
}

// writes waits until a process has made n more writes.
func (x *killTest) writes(process, n int) {
	x.Helper()
	require.True(x, x.calls.awaitWrites(process, n), "process %d does not write", process)
}

// compact gives up the history before a revision that the bare watch has come to: that
// of etcd, or of the prefix.
func (x *killTest) compact(kind int, by *process, at engine.Revision) {
	ctx, cancel := context.WithTimeout(x.ctx, killPatience)
	defer cancel()
	if kind%2 == 0 {
		_, _ = x.raw.Compact(ctx, int64(at)) // refused if it was compacted further
		return
	}
	_ = by.Compact(ctx, at) // which may not have come so far
}

// resume saves a revision of one engine, and goes on from there at the other, and in
// another process. It returns the number of events since.
func (x *killTest) resume(round int) int {
	x.Helper()
	saved, other := x.engines[round%2], x.engines[1-round%2]
	at := x.agree()
	checkpoint, err := saved.Checkpoint(x.ctx, at)
	require.NoError(x, err)
	x.writes(0, 5)
	x.writes(1, 5)
	through := x.agree()
	x.bare.await(through)
	want := x.bare.between(at, through)
	require.NotEmpty(x, want)
	require.Equal(x, want, other.resume(x, checkpoint, through))
	require.Equal(x, want, resumeElsewhere(x, x.members, x.cfg.Prefix, checkpoint, through))
	return len(want)
}

// agree returns a revision that all engines have come to, and that their windows reach back to: one that was behind a
// compaction lists the state again, which may be of a later revision.
func (x *killTest) agree() (at engine.Revision) {
	x.Helper()
	require.Eventually(x, func() bool {
		at = 0
		for _, p := range x.engines {
			newest, err := p.backend.Revision(x.ctx)
			if err != nil {
				return false
			}
			at = max(at, newest)
		}
		for _, p := range x.engines {
			if p.WaitForRevision(x.ctx, at) != nil || p.Stats().WindowFloor > at {
				return false
			}
		}
		return true
	}, killPatience, tick)
	return at
}

// lastKey is that of the last write.
const lastKey = "k/last"

// finish makes a last write, which every watch selects, waits until each has it, and
// returns its revision.
func (x *killTest) finish() engine.Revision {
	x.Helper()
	last, err := x.raw.Put(x.ctx, x.place(lastKey), encoded(x, thing{Name: lastKey, Text: "last", Color: "red"}))
	require.NoError(x, err)
	for _, p := range x.engines {
		p.awaitWatches()
	}
	return engine.Revision(last.Header.Revision)
}
