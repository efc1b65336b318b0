package interop_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

const (
	// patience is how long anything may take on the slowest machine.
	patience = 5 * time.Minute
	// maxPerSecond is how many requests an informer may send in a second: a few more
	// than there are faults in one. An informer that is misled sends thousands.
	maxPerSecond = 10
)

// resumeMinutes is the environment variable that asks for the long form of the test.
const resumeMinutes = "WATCHMILL_RESUME_MINUTES"

// resumption is what the test is run with. The long form is
//
//	WATCHMILL_RESUME_MINUTES=3 [WATCHMILL_RESUME_SEED=7] go test -run Resume -v -timeout 30m
type resumption struct {
	informers, objects int
	seed               uint64
	// lasts is how long faults go on at random. Zero means one fault of each kind in
	// first, and that each informer watches again before the next.
	lasts time.Duration
	first []string
	// pace is the time between two writes, and fault the longest that a fault lasts.
	pace, fault time.Duration
}

func resumptionOf(t *testing.T) resumption {
	short := resumption{informers: 50, objects: 20, seed: 1, pace: 20 * time.Millisecond, fault: 200 * time.Millisecond}
	short.first = []string{
		"a replica is killed", "connections to the origin are half open", "the origin is killed", "connections to the replica are buffered",
		"a replica is shut down", "connections to the replica are half open", "connections to the replica are cut",
	}
	text := os.Getenv(resumeMinutes)
	if text == "" {
		return short
	}
	minutes, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err, resumeMinutes)
	long := resumption{informers: 1000, objects: 20, seed: 1, pace: 100 * time.Millisecond, fault: 4 * time.Second}
	long.lasts = time.Duration(minutes * float64(time.Minute))
	if seed := os.Getenv("WATCHMILL_RESUME_SEED"); seed != "" {
		long.seed, err = strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err, "WATCHMILL_RESUME_SEED")
	}
	return long
}

// Stock informers over replicas of one origin get every event once, whatever happens to
// the servers and the network. They list again only if a watch is cut before its first
// frame.
func TestResume_ThroughKillsAndABadNetwork(t *testing.T) {
	c := resumptionOf(t)
	t.Logf("seed %d", c.seed)
	x := newTree(t, 3, c.objects)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all []*follower
	for n := range c.informers {
		f := x.follow(n)
		all = append(all, f)
		f.factory.Start(ctx.Done())
	}
	for _, f := range all {
		f.sync(t, ctx, c.objects, x.newest)
	}
	started := time.Now()
	faults := x.disturb(ctx, c, all)
	lasted := time.Since(started)
	want := x.state()
	for _, f := range all {
		require.Eventually(t, func() bool { return f.has(want) && f.receivedUpTo(x.newest) }, patience, 20*time.Millisecond)
	}
	stop()
	for _, f := range all {
		f.factory.Shutdown()
		f.idle()
	}
	t.Logf("%d informers, 3 replicas; %d writes and %d faults in %v: %v", c.informers, x.written, total(faults), lasted.Round(time.Second), faults)
	x.judge(all, lasted)
}

// disturb writes while faults happen, and returns how often each did. When it returns,
// the network is in order and all servers run.
func (x *tree) disturb(ctx context.Context, c resumption, all []*follower) map[string]int {
	ctx, stop := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		r := rand.New(rand.NewPCG(c.seed, 1))
		tick := time.NewTicker(c.pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := x.write(r, c.objects); err != nil {
				x.t.Errorf("writing: %v", err)
				return
			}
			<-tick.C
		}
	})
	defer writer.Wait()
	defer stop()
	r := rand.New(rand.NewPCG(c.seed, 2))
	known, done := x.faults(ctx), map[string]int{}
	if c.lasts == 0 {
		for _, name := range c.first {
			known[name](r, c.fault)
			done[name]++
			for _, f := range all {
				require.Eventually(x.t, f.isStreaming, patience, 5*time.Millisecond, "after: %s", name)
			}
		}
		return done
	}
	names := slices.Sorted(maps.Keys(known))
	for end := time.Now().Add(c.lasts); time.Now().Before(end); {
		name := names[r.IntN(len(names))]
		known[name](r, c.fault/10+rand.N(c.fault*9/10))
		done[name]++
		pause(c.fault / 10)
	}
	return done
}

// pause waits for d of real time: the servers, the clients and the network are real.
func pause(d time.Duration) { <-time.After(d) }

// faults are the possible faults by name. Each ends after the given time, or at once.
func (x *tree) faults(ctx context.Context) map[string]func(*rand.Rand, time.Duration) {
	faults := map[string]func(*rand.Rand, time.Duration){
		"a replica is killed": func(r *rand.Rand, d time.Duration) {
			n := x.any(r)
			n.stop()
			pause(d)
			x.startReplica(n)
		},
		"a replica is shut down": func(r *rand.Rand, d time.Duration) {
			n := x.any(r)
			n.drain(ctx)
			pause(d)
			x.startReplica(n)
		},
		"the origin is killed": func(_ *rand.Rand, d time.Duration) {
			x.origin.refuse()
			x.writing.Lock()
			defer x.writing.Unlock()
			x.origin.stop()
			pause(d)
			x.startOrigin()
		},
	}
	for name, pick := range map[string]func(*rand.Rand) *node{
		"replica": x.any, "origin": func(*rand.Rand) *node { return x.origin },
	} {
		faults["connections to the "+name+" are cut"] = func(r *rand.Rand, _ time.Duration) { pick(r).cut() }
		faults["the "+name+" refuses connections"] = func(r *rand.Rand, d time.Duration) {
			n := pick(r)
			n.refuse()
			pause(d)
			n.forwardTo(n.http.Listener.Addr().String())
		}
		for how, w := range map[string]linkQuality{"slow": slow, "buffered": buffered, "half open": halfOpen} {
			faults["connections to the "+name+" are "+how] = func(r *rand.Rand, d time.Duration) {
				n := pick(r)
				n.setQuality(w)
				pause(d)
				if w.drop {
					n.cut() // the data that was swallowed is lost to both sides
				}
				n.setQuality(good)
			}
		}
	}
	return faults
}

func (x *tree) any(r *rand.Rand) *node { return x.replicas[r.IntN(len(x.replicas))] }

// state returns the revision of each object at the origin.
func (x *tree) state() map[string]engine.Revision {
	want := map[string]engine.Revision{}
	for key, e := range x.ledger.NewestByKey() {
		if !e.Deleted {
			want[key] = e.Revision
		}
	}
	return want
}

// receivedUpTo reports whether the handler received the last write; true if the informer listed
// again, since then it may not.
func (f *follower) receivedUpTo(last engine.Revision) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.relisted || f.seen == last
}

// judge fails the test if an informer lost or repeated an event, or sent needless
// requests.
func (x *tree) judge(all []*follower, lasted time.Duration) {
	t := x.t
	everything := judge.Selection{}
	expected := judge.Expect(slices.Values([]judge.Selection{everything}), &x.ledger)
	answers, sum, exact, busiest := map[string]int{}, requests{}, 0, 0
	for _, f := range all {
		f.mu.Lock()
		require.Empty(t, f.wrong)
		sum.resumes, sum.relists, sum.excused = sum.resumes+f.resumes, sum.relists+f.relists, sum.excused+f.excused
		for status, n := range f.answers {
			answers[status] += n
		}
		for _, n := range f.perSecond {
			busiest = max(busiest, n)
		}
		if !f.relisted {
			exact++
			f.trail.End()
			v := f.trail.Judge(expected, everything)
			require.Nil(t, v.Failure, "%v", v.Failure)
			require.Zero(t, v.Lost, f.trail.Name)
			require.Zero(t, f.trail.Outdated(expected, everything), f.trail.Name)
		}
		f.mu.Unlock()
	}
	unanswered := 0
	for _, n := range x.replicas {
		unanswered += n.countUnanswered()
	}
	requested := total(answers)
	t.Logf("%d resumes, %d lists again (%d of them because a watch ended before its first event); answers: %v", sum.resumes, sum.relists, sum.excused, answers)
	t.Logf("faults ended %d connections before a first event", unanswered)
	t.Logf("%d informers never listed again and had each of their events exactly once", exact)
	t.Logf("requests per informer: %.1f, %.3f per second, at most %d in one second",
		float64(requested)/float64(len(all)), float64(requested)/float64(len(all))/lasted.Seconds(), busiest)
	require.NotZero(t, exact)
	require.NotZero(t, sum.resumes)
	require.Equal(t, sum.excused, sum.relists, "informers listed again where the window reaches")
	require.LessOrEqual(t, sum.excused, unanswered, "a server ended watches before their first event without a fault")
	require.LessOrEqual(t, busiest, maxPerSecond)
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
