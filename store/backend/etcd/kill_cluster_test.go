package etcd_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// clusterTest is a cluster of three members that two engines write to. Each engine has a proxy of its own before each member,
// and knows them in another order.
//
//	clients ─▶ engine 0 ─▶ proxies ─┬▶ member 0 ◀─┐    one at a time is killed, replaced,
//	                        cut,    ├▶ member 1 ◀─┼─▶  isolated, or held back
//	clients ─▶ engine 1 ─▶ proxies ─┴▶ member 2 ◀─┘
//	                     slow, half open
type clusterTest struct {
	*killTest
	*etcdtest.Cluster
	random  *rand.Rand
	proxies [2][]*etcdtest.Proxy // of each process, by member
	pending []string             // faults of members that are to be drawn
}

// Random faults, each of a member or of the network between all of them, and sometimes one of a connection to a member: what
// TestKill_EnginesOfTwoProcesses requires holds with several members, of which most are in touch.
func TestKill_EnginesOverThreeMembers(t *testing.T) {
	n := rounds(t, 5)
	x := newClusterTest(t, killSeed(t))
	stop := x.runClients()
	for round := range n {
		x.round.Store(int64(round))
		begun := time.Now()
		what := x.fault()
		x.resume(round)
		t.Logf("round %d took %v: %s", round+1, time.Since(begun).Round(time.Second/10), what)
	}
	stop()
	x.judge()
}

// killSeed is that of the faults: WATCHMILL_KILL_SEED for others.
func killSeed(t *testing.T) uint64 {
	text := os.Getenv("WATCHMILL_KILL_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return seed
}

func newClusterTest(t *testing.T, seed uint64) *clusterTest {
	t.Helper()
	x := &clusterTest{killTest: &killTest{patience: time.Second}, random: rand.New(rand.NewPCG(seed, 0))}
	// Members that were away catch up by snapshots, and logs are not flushed: only processes are killed.
	x.Cluster = etcdtest.StartCluster(t, 3, "--snapshot-count=50", "--snapshot-catchup-entries=10", "--unsafe-no-fsync")
	var through [2][]string
	for i := range through {
		for _, m := range x.Members {
			p := etcdtest.StartProxy(t, m.Endpoint)
			x.proxies[i] = append(x.proxies[i], p)
			through[i] = append(through[i], p.Endpoint)
		}
	}
	slices.Reverse(through[1])
	x.start(t, x.Endpoints(), through)
	return x
}

// fault makes faults while both processes write, and ends them. One process goes on meanwhile, and its engine keeps up with
// the cluster. It returns what it did.
func (x *clusterTest) fault() (what string) {
	x.Helper()
	name, i := x.draw()
	off := x.random.IntN(2)
	on, proxy := 1-off, x.proxies[off][x.random.IntN(len(x.Members))]
	what = fmt.Sprintf("%s %d, %s of process %d", name, i, x.connection(proxy), off)

	at, kind := x.bare.newest(), x.random.IntN(2)
	end := x.member(name, i)
	x.writes(on, 3)
	x.clients.Go(func() { x.compact(kind, x.engines[on], at) }) // it may wait for the end of the fault
	x.writes(on, 3)
	x.keepsUp(x.engines[on])
	end()
	proxy.Heal()
	proxy.Delay(0)
	x.writes(0, 3)
	x.writes(1, 3)
	return what
}

// draw returns a fault of members, each once before one is drawn again, and a member.
func (x *clusterTest) draw() (name string, member int) {
	x.Helper()
	if len(x.pending) == 0 {
		x.pending = []string{"kill", "isolate", "hold back", "replace", "delay"}
		x.random.Shuffle(len(x.pending), func(i, j int) { x.pending[i], x.pending[j] = x.pending[j], x.pending[i] })
	}
	name, x.pending = x.pending[0], x.pending[1:]
	leader := x.Leader()
	others := x.random.IntN(2) == 0 || name == "hold back" // which only a follower can be
	if others {
		return name, (leader + 1 + x.random.IntN(len(x.Members)-1)) % len(x.Members)
	}
	return name, leader
}

// keepsUp waits until an engine has come to a revision that is the newest now.
func (x *clusterTest) keepsUp(p *process) {
	x.Helper()
	at := p.read(x)
	require.Eventually(x, func() bool { return p.WaitForRevision(x.ctx, at) == nil }, killPatience, tick)
}

// member makes a fault of a member, which lasts until the returned function is called.
func (x *clusterTest) member(name string, i int) (end func()) {
	x.Helper()
	switch name {
	case "kill":
		x.Members[i].Kill()
		return x.Members[i].Restart
	case "replace":
		x.Replace(i)
	case "isolate":
		x.Isolate(i)
	case "hold back":
		x.HoldBack(i)
	case "delay":
		x.Delay(20 * time.Millisecond)
	}
	return x.Cluster.Heal
}

// connection makes a connection bad, or not, and returns how.
func (x *clusterTest) connection(proxy *etcdtest.Proxy) (how string) {
	switch x.random.IntN(6) {
	case 0:
		proxy.Cut()
		return "a cut connection"
	case 1:
		proxy.Mute()
		return "a connection without replies"
	case 2:
		proxy.Delay(20 * time.Millisecond)
		return "a slow connection"
	}
	return "good connections"
}
