package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/coreos/go-semver/semver"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Info is what the members say of themselves.
type Info struct {
	// Cluster is the cluster's ID.
	Cluster uint64
	Members []Member
}

// Member is a member of the cluster, as it is reached by one of the endpoints.
type Member struct {
	Endpoint, Version string
	// Revision is the newest that the member has applied; zero if it did not say.
	Revision store.Revision
	// Size is how large the member's database is in bytes, Used how much of it is
	// in use, and Quota how large it may be; zero if it does not say. A member that
	// has reached its quota takes no writes until its operator does something: see
	// the package's documentation.
	Size, Used, Quota int64
	// Alarms are what it is worried about, such as that it has no space.
	Alarms []string
	// Err is why it did not answer; then all but Endpoint is zero.
	Err error
}

// Info asks all endpoints.
func (b *Backend) Info(ctx context.Context) (Info, error) {
	ctx, done, err := b.begin(ctx)
	if err != nil {
		return Info{}, err
	}
	defer done()
	info := Info{Cluster: b.cluster}
	for _, endpoint := range b.client.Endpoints() {
		m, cluster := b.ask(ctx, endpoint)
		info.Members = append(info.Members, m)
		if info.Cluster == 0 {
			info.Cluster = cluster
		}
	}
	return info, nil
}

// ask asks one endpoint.
func (b *Backend) ask(ctx context.Context, endpoint string) (m Member, cluster uint64) {
	m.Endpoint = endpoint
	asking, cancel := context.WithTimeoutCause(ctx, dialTimeout, errNoAnswer)
	defer cancel()
	s, err := b.client.Status(asking, endpoint)
	if err != nil {
		m.Err = errors.Join(readError(asking, "asking "+endpoint, err), b.unreachable(ctx, endpoint))
		return m, 0
	}
	m.Version, m.Revision = s.Version, store.Revision(s.Header.GetRevision())
	m.Size, m.Used, m.Quota, m.Alarms = s.DbSize, s.DbSizeInUse, s.DbSizeQuota, s.Errors
	return m, s.Header.GetClusterId()
}

// unreachable returns why there is no connection to an endpoint, which the client
// keeps to itself; nil if there is one, or it cannot be known.
func (b *Backend) unreachable(ctx context.Context, endpoint string) error {
	if !b.owned || strings.Contains(endpoint, "://") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if b.config.TLS != nil {
		dial = (&tls.Dialer{Config: b.config.TLS}).DialContext
	}
	connection, err := dial(ctx, "tcp", endpoint)
	if err == nil {
		err = connection.Close()
	}
	return err
}

// quotaWarning is the part of its quota from which a member is reported.
const quotaWarning = 0.8

// checkMembers demands that one member answers at least, and that none that does is
// too old. It reports those that have problems.
func (b *Backend) checkMembers(ctx context.Context) error {
	var unreachable []error
	reached := false
	for _, endpoint := range b.client.Endpoints() {
		m, cluster := b.ask(ctx, endpoint)
		if m.Err != nil {
			unreachable = append(unreachable, m.Err)
			continue
		}
		if !reliable(m.Version) {
			return &VersionError{Endpoint: endpoint, Version: m.Version}
		}
		b.cluster, reached = cluster, true
		if m.Quota > 0 && float64(m.Size) >= quotaWarning*float64(m.Quota) {
			b.report(fmt.Errorf("%w soon: the database of %s has %d of %d bytes: compact and defragment it", backend.ErrFull, endpoint, m.Size, m.Quota))
		}
		for _, alarm := range m.Alarms {
			b.report(fmt.Errorf("etcd at %s: %s", endpoint, alarm))
		}
	}
	if reached {
		for _, err := range unreachable {
			b.report(err)
		}
		return nil
	}
	return errors.Join(unreachable...)
}

// reliable reports whether the progress that a version reports comes behind the
// events that it covers (etcd-io/etcd#15220, #17507).
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
