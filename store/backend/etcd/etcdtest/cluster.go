package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Cluster is several members, with a network between them that fails on demand.
//
//	Isolate   cuts a member off from the others; clients still reach it
//	HoldBack  lets a member know of its leader, and of no writes
//	Delay     delays everything between members
//	Heal      ends all these
//	Replace   gives a member's place to another one, which begins without data
type Cluster struct {
	Members []*Member

	t     testing.TB
	peers *peers
	more  []string
	names []string // NAME=URL for the other members, of each

	mu  sync.Mutex
	ids []uint64 // zero while unknown
}

// StartCluster starts n members as [StartMember] does, and returns when each of them serves.
func StartCluster(t testing.TB, n int, more ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, peers: startPeers(t), more: more}
	for range n {
		c.place()
	}
	for i := range n {
		c.Members[i] = c.member(i, "new")
	}
	c.start()
	for i := range n {
		c.learn(i)
	}
	return c
}

// place makes a place for one more member, and returns it.
func (c *Cluster) place() (i int) {
	c.t.Helper()
	i = len(c.names)
	c.mu.Lock()
	c.ids = append(c.ids, 0)
	c.mu.Unlock()
	client := freeAddress(c.t, "")
	port := freeAddress(c.t, client)
	address := c.peers.listen(c.t, port, func() string { return c.id(i) })
	c.names = append(c.names, fmt.Sprintf("m%d=http://%s", i, address))
	c.Members = append(c.Members, &Member{Endpoint: client, port: port, peer: "http://" + address})
	return i
}

// member returns a member without data for a place, which is not started.
func (c *Cluster) member(i int, state string) *Member {
	c.t.Helper()
	name, _, _ := strings.Cut(c.names[i], "=")
	m := newMember(c.t, name, *c.Members[i], append([]string{
		"--initial-cluster=" + strings.Join(c.names, ","), "--initial-cluster-state=" + state,
		"--heartbeat-interval=100", "--election-timeout=1000", // or busy members lose their leader
		"--strict-reconfig-check=false", // or they can be replaced seconds later only
	}, c.more...))
	c.t.Cleanup(m.Kill)
	return m
}

// start starts all members at once, since one alone does not serve.
func (c *Cluster) start() {
	c.t.Helper()
	failed := make([]error, len(c.Members))
	var starting sync.WaitGroup
	for i, m := range c.Members {
		starting.Go(func() { failed[i] = m.start() })
	}
	starting.Wait()
	for i, m := range c.Members {
		m.check(failed[i])
	}
}

// Endpoints are the addresses of the members.
func (c *Cluster) Endpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Endpoint)
	}
	return all
}

// Isolate cuts a member off from the others, until Heal. If it leads, the others elect another leader,
// and it finds out some time later.
func (c *Cluster) Isolate(i int) { c.peers.change(func() { c.peers.isolated[c.id(i)] = true }) }

// HoldBack keeps what is written from a member, until Heal. It stays a follower in touch with its leader,
// with a state that grows old, as one whose disk has stalled.
func (c *Cluster) HoldBack(i int) { c.peers.change(func() { c.peers.heldBack[c.id(i)] = true }) }

// Delay delays everything between members by d, each way; zero ends that.
func (c *Cluster) Delay(d time.Duration) { c.peers.change(func() { c.peers.delay = d }) }

// Heal ends what Isolate, HoldBack and Delay have begun.
func (c *Cluster) Heal() {
	c.peers.change(func() {
		clear(c.peers.isolated)
		clear(c.peers.heldBack)
		c.peers.delay = 0
	})
}

// Leader waits until most members follow one of them, and returns its place.
func (c *Cluster) Leader() (place int) {
	c.t.Helper()
	err := within(startPatience, func(ctx context.Context) error {
		votes := map[uint64]int{}
		for i := range c.Members {
			if s, err := c.status(ctx, i); err == nil {
				votes[s.Leader]++
			}
		}
		place = slices.IndexFunc(c.ids, func(id uint64) bool { return votes[id] > len(c.ids)/2 })
		if place < 0 {
			return errors.New("no leader")
		}
		return nil
	})
	if err != nil {
		c.t.Fatalf("looking for the leader: %v", err)
	}
	return place
}

// Replace removes a member from the cluster, and has another one join in its place and with its addresses,
// without data. It needs the others to be connected, and some time if they have just lost their leader.
func (c *Cluster) Replace(i int) {
	c.t.Helper()
	c.Members[i].Kill()
	c.request(i, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, c.number(i))
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return nil // an attempt without an answer was done
		}
		return err
	})
	c.join(i, clientv3.Cluster.MemberAdd)
}

// AddLearner adds a member that has no vote, and answers no client. It returns its place.
func (c *Cluster) AddLearner() (i int) {
	c.t.Helper()
	i = c.place()
	c.join(i, clientv3.Cluster.MemberAddAsLearner)
	return i
}

// join adds a member, and starts it.
func (c *Cluster) join(i int, add func(clientv3.Cluster, context.Context, []string) (*clientv3.MemberAddResponse, error)) {
	c.t.Helper()
	m := c.member(i, "existing")
	c.request(i, func(ctx context.Context, client *clientv3.Client) error {
		_, err := add(client, ctx, []string{m.peer})
		if errors.Is(err, rpctypes.ErrPeerURLExist) {
			return nil // as above
		}
		return err
	})
	c.Members[i] = m
	m.Restart()
	c.learn(i)
}

// request makes a request to the members but i, until it succeeds.
func (c *Cluster) request(i int, make func(context.Context, *clientv3.Client) error) {
	c.t.Helper()
	endpoints := slices.Delete(c.Endpoints(), i, i+1)
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		c.t.Fatalf("connecting to %v: %v", endpoints, err)
	}
	defer client.Close()
	err = within(startPatience, func(ctx context.Context) error {
		// It is lost if it goes to a leader that was just killed, and then has no other answer.
		ctx, cancel := context.WithTimeout(ctx, requestPatience)
		defer cancel()
		return make(ctx, client)
	})
	if err != nil {
		c.t.Fatalf("changing the members: %v", err)
	}
}

// requestPatience is how long a change of the members may take.
const requestPatience = 5 * time.Second

// learn asks a member for its ID.
func (c *Cluster) learn(i int) {
	c.t.Helper()
	var id uint64
	err := within(startPatience, func(ctx context.Context) error {
		s, err := c.status(ctx, i)
		if err == nil {
			id = s.Header.MemberId
		}
		return err
	})
	if err != nil {
		c.t.Fatalf("asking member %d for its ID: %v", i, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[i] = id
}

// number returns the ID of a member, zero if it is not known yet.
func (c *Cluster) number(i int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[i]
}

// id is number as the members write it.
func (c *Cluster) id(i int) string { return strconv.FormatUint(c.number(i), 16) }

// statusPatience is how long a member may take to say how it is.
const statusPatience = time.Second

// status asks a member how it is.
func (c *Cluster) status(ctx context.Context, i int) (*clientv3.StatusResponse, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Members[i].Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	return client.Status(ctx, c.Members[i].Endpoint)
}
