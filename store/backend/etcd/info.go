package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-semver/semver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd/internal/avoid"
	"github.com/watchmill/watchmill/usercode"
)

// Info is the status of the members.
type Info struct {
	// Cluster is the cluster's ID.
	Cluster uint64
	Members []Member
}

// Member is a member of the cluster, as it is reached by one of the endpoints.
type Member struct {
	Endpoint, Version string
	// Revision is the newest that the member has applied; zero if unknown.
	Revision store.Revision
	// Size is the size of the member's database in bytes, Used how much of it is in
	// use, and Quota how large it may be; zero if unknown. A member that has reached its
	// quota takes no writes until its operator acts: see the package's documentation.
	Size, Used, Quota int64
	// Alarms are the alarms of the member, such as that it has no space.
	Alarms []string
	// Err is the reason if the member did not answer; then all but Endpoint is zero.
	Err error
}

// Info requests the status of all endpoints. A member that does not answer has an Err. Errors:
// [store.ErrClosed], ctx's cause.
func (b *Backend) Info(ctx context.Context) (Info, error) {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return Info{}, err
	}
	defer call.end()
	info := Info{Cluster: b.cluster}
	for _, a := range b.askAll(ctx) {
		info.Members = append(info.Members, a.member)
		if info.Cluster == 0 {
			info.Cluster = a.cluster
		}
	}
	return info, nil
}

// answer is what an endpoint answers, and the ID of its cluster.
type answer struct {
	member  Member
	cluster uint64
}

// askAll requests the status of all endpoints, for a third of the call's time at most. So one that does not answer
// leaves time for what the caller does next.
func (b *Backend) askAll(ctx context.Context) []answer {
	limit := b.config.RequestTimeout
	if end, bounded := ctx.Deadline(); bounded {
		limit = time.Until(end)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(dialTimeout, limit/3), errNoAnswer)
	defer cancel()
	return askEach(ctx, b.client.Endpoints(), b.ask)
}

// askEach asks all endpoints at once, and again while none of them has answered. Once one has, those that cannot be
// reached are left alone, and the others have a second more: a program that opens many backends, one after the other,
// would else take very long to start while a member is down.
func askEach(ctx context.Context, endpoints []string, ask func(ctx context.Context, endpoint string) answer) []answer {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	all := make([]answer, len(endpoints))
	var first sync.Once
	answered := make(chan struct{})
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() {
			all[i] = askAgain(ctx, answered, func() answer { return ask(ctx, endpoint) })
			if all[i].member.Err == nil {
				first.Do(func() {
					close(answered)
					time.AfterFunc(silence, func() { stop(errNoAnswer) })
				})
			}
		})
	}
	asking.Wait()
	return all
}

// askAgain asks an endpoint, and again while it cannot be reached and none has answered. If the time is over, it returns
// the reason that it had before.
func askAgain(ctx context.Context, answered <-chan struct{}, ask func() answer) answer {
	a := ask()
	for backend.Retryable(a.member.Err) {
		select {
		case <-answered:
			return a
		case <-ctx.Done():
			return a
		case <-time.After(hurry):
		}
		again := ask()
		if again.member.Err != nil && ctx.Err() != nil {
			return a
		}
		a = again
	}
	return a
}

// ask requests the status of one endpoint.
func (b *Backend) ask(ctx context.Context, endpoint string) answer {
	m := Member{Endpoint: endpoint}
	s, err := b.status(ctx, endpoint)
	if err != nil {
		m.Err = readError(ctx, "asking "+endpoint, err)
		return answer{member: m}
	}
	m.Version, m.Revision = s.Version, store.Revision(s.Header.GetRevision())
	m.Size, m.Used, m.Quota, m.Alarms = s.DbSize, s.DbSizeInUse, s.DbSizeQuota, s.Errors
	return answer{m, s.Header.GetClusterId()}
}

// status requests the status of one endpoint over a connection of its own. With a client that was made here, it fails
// at once, with the reason, if there can be no connection. Others wait for one, and do not say why there is none.
func (b *Backend) status(ctx context.Context, endpoint string) (*pb.StatusResponse, error) {
	if !b.owned {
		s, err := b.client.Status(ctx, endpoint)
		return (*pb.StatusResponse)(s), err
	}
	connection, err := b.client.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	s, err := pb.NewMaintenanceClient(connection).Status(ctx, &pb.StatusRequest{})
	return s, clientv3.ContextError(ctx, err)
}

// quotaWarning is the part of its quota from which a member is reported.
const quotaWarning = 0.8

// checkMembers fails unless at least one member answers, and those that do are of one cluster and not too old. It
// reports the members that have problems.
func (b *Backend) checkMembers(ctx context.Context) error {
	var unreachable []error
	reached := false
	for _, a := range b.askAll(ctx) {
		m := a.member
		if m.Err != nil {
			unreachable = append(unreachable, m.Err)
			continue
		}
		if !reliable(m.Version) {
			return &VersionError{Endpoint: m.Endpoint, Version: m.Version}
		}
		if reached && a.cluster != b.cluster {
			return &usercode.ConfigError{Field: "Endpoints", Problem: fmt.Sprintf(
				"lead to several clusters, %x and, by %s, %x; give members of one", b.cluster, m.Endpoint, a.cluster)}
		}
		b.cluster, reached = a.cluster, true
		if m.Quota > 0 && float64(m.Size) >= quotaWarning*float64(m.Quota) {
			b.report(fmt.Errorf("%w soon: the database of %s has %d of %d bytes: compact and defragment it", backend.ErrFull, m.Endpoint, m.Size, m.Quota))
		}
		for _, alarm := range m.Alarms {
			b.report(fmt.Errorf("etcd at %s: %s", m.Endpoint, alarm))
		}
	}
	if reached {
		for _, err := range unreachable {
			b.report(err)
		}
		return nil
	}
	if ctx.Err() != nil {
		return interrupted(ctx, "asking the members")
	}
	return errors.Join(unreachable...)
}

// reliable reports whether members of a version report progress only after the events
// that it covers (etcd-io/etcd#15220, #17507).
func reliable(version string) bool {
	v, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	switch {
	case v.Major == 3 && v.Minor == 4:
		return v.Patch >= 31
	case v.Major == 3 && v.Minor == 5:
		return v.Patch >= 13
	}
	return v.Major > 3 || v.Major == 3 && v.Minor > 5
}

// silence is how long a member may be silent, unless RequestTimeout is short.
const silence = time.Second

// patience is how long a member may answer nothing.
func (c *Config) patience() time.Duration { return min(silence, c.RequestTimeout/10) }

// newAvoidance returns what the client of b avoids members by, nil if there are too few of them for that.
func (b *Backend) newAvoidance() *avoid.Avoidance {
	members := len(b.config.Endpoints)
	if members < 3 {
		return nil
	}
	return avoid.New(members, b.config.patience(), b.awaitAnswer)
}

// awaitAnswer asks the member at an address for the revision until it answers, or b is closed.
func (b *Backend) awaitAnswer(address string) {
	only := avoid.Only(b.life, address)
	for over := false; !over; {
		ctx, call, err := b.begin(only)
		if err != nil {
			return
		}
		_, err = b.client.Get(ctx, b.keys.floor)
		over = ctx.Err() == nil && avoid.Answered(codeOf(err))
		call.end()
	}
}
