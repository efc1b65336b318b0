package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/transport"
	"github.com/watchmill/watchmill/usercode"
)

// Provider has resources to serve. A [registry.Store] is one. One that cannot be compared by ==, such as
// a slice, cannot be removed again: give a pointer to it if it is to come and go.
type Provider interface{ Resources() []registry.Resource }

// Config configures a server: what it serves, and which users may do what.
type Config struct {
	// Resources are the kinds that the server begins with. At least one is required; group,
	// version and resource together must be unique. [Server.Add] adds others later.
	Resources []Provider
	// Authenticate returns the user of a request; an error is answered with 401, and logged, unless it is
	// [ErrUnauthenticated]. A 401 over HTTP/2 ends the connection. Nil means that every user is [Anonymous].
	//
	// The server adds no group to the user. If Authorize has rules for system:authenticated, in which Kubernetes
	// has all users but the anonymous one, Authenticate has to return that group.
	Authenticate func(r *http.Request) (User, error)
	// Authorize refuses a request with an error, which is answered with 403 and the
	// error's text. Nil allows everything.
	Authorize func(ctx context.Context, u User, r *Request) error
	// Impersonation lets users act as others, as kubectl --as asks for, if Authorize allows
	// them to impersonate each part of the other. It requires Authorize. False means that
	// requests with headers of impersonation are refused.
	//
	// Authorize gets the verb impersonate, and a name, as Name, of one of these resources:
	// users, groups, serviceaccounts (with Namespace) and, of the group authentication.k8s.io,
	// uids and userextras (with the key as Subresource). An Authorize that lists what it
	// refuses, and not what it allows, has to refuse that verb.
	//
	// As in Kubernetes the other user has the groups that the request gives, and those that follow from its
	// name: system:authenticated, or system:unauthenticated for the anonymous user, and for a service account
	// without groups in the request those of service accounts. Authenticate is not asked, and may return others.
	Impersonation bool
	// Audit is called after every request, whether it was served or refused. It is called
	// concurrently, and must not block. A panic is logged, and changes no answer.
	Audit func(ctx context.Context, e Audited)
	// Hosts are the names that the Host header of a request may have, besides IP
	// addresses and localhost; a name has neither a scheme nor a port.
	Hosts []string
	// Limits bounds what clients can use.
	Limits Limits
	// WebSocket sends watches as messages to clients that ask for it: the result of
	// websocket.New of package serve/websocket. If it is nil, such requests are answered
	// like others.
	WebSocket Upgrader
	// CompressAbove is the size in bytes above which lists and objects are compressed by
	// gzip, for clients that accept it. The API server has 128 KiB. Zero means never: in a
	// fast network compression takes longer than it saves.
	CompressAbove int
	// Version is the gitVersion that /version answers; "" means [ProtocolVersion].
	Version string
	// Metrics is called for each request and each event of a watch; nil measures nothing.
	Metrics Metrics
	// MetricsHandler answers /metrics for users that Authorize allows to get it. If it is
	// nil, the path does not exist.
	MetricsHandler http.Handler
	// Checks are conditions of /readyz, and of /livez if they say so, besides the server's own.
	Checks []Check
	// Logger gets the server's own failures, those of storage and of Authenticate at most once in ten seconds, and,
	// from ListenAndServe, problems of connections, such as TLS handshakes that fail; nil means slog.Default. A
	// line whose handler panics is lost.
	Logger *slog.Logger
}

// validate returns an [*engine.ConfigError] for a field that is wrong.
func (c *Config) validate() error {
	if i := slices.IndexFunc(c.Resources, usercode.IsNil); i >= 0 {
		return &engine.ConfigError{Field: fmt.Sprintf("Resources[%d]", i), Problem: "is nil; give a registry.Store"}
	}
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, ":/* \t\n") {
			return &engine.ConfigError{Field: "Hosts", Problem: fmt.Sprintf("has %q; give a name such as mill.example.com, without scheme, port, wildcard or blank", host)}
		}
	}
	if c.Impersonation && c.Authorize == nil {
		return &engine.ConfigError{Field: "Impersonation", Problem: "needs Authorize, without which every user could act as every other; give it, too"}
	}
	if c.CompressAbove < 0 {
		return &engine.ConfigError{Field: "CompressAbove", Problem: "is negative; zero means that nothing is compressed"}
	}
	if err := validateChecks(c.Checks); err != nil {
		return err
	}
	return c.Limits.validate()
}

// ProtocolVersion is the Kubernetes version whose protocol the server speaks.
const ProtocolVersion = "v1.37.2"

// Limits bounds what clients can use. Zero values mean the defaults, which are given with
// each field.
type Limits struct {
	// Reads and Writes are how many requests may be in flight, except watches: 400 and 200.
	//
	// A write is in flight once its body was read. The server reads at most Writes bodies at
	// a time. When there are as many, a new one displaces the body that has been arriving
	// longest of the user that has most. It displaces one of its own user only after that has
	// taken a second.
	//
	// When all reads are in flight, one whose answer has been sent for a second gives up its
	// place to a new one, and goes on. A write gives up its place when its answer begins. There
	// are at most Reads of those; when there are as many, one is cut off, chosen as among bodies,
	// but no answer to a write before it was sent for a second: until then other writes keep their places, which they
	// give up to new ones as soon as they can. Over HTTP/2 there are as many answers to requests without a place, such
	// as to health checks and refusals, but not fewer than 400.
	//
	// A list that is being sent keeps its state in memory: all of its objects, including those that were
	// replaced since. It lasts as long as its client reads as WriteStall demands. So in the worst case as many
	// past states are kept as Reads and those that gave up their places; if users are not trusted with that,
	// fewer Reads bound it.
	//
	// While a write is decided, it may need some 250 times the memory of its body, or of the JSON of its object, if
	// these have very many small parts. In the worst case all Writes do so at a time; if users are not trusted with
	// that, fewer Writes, or fewer BodyBytes, bound it.
	Reads, Writes int
	// ReadsPerUser and WritesPerUser are how many of them one user may have: half of them,
	// rounded up; all of them without [Config].Authenticate, when there is only one user.
	ReadsPerUser, WritesPerUser int
	// Watches is how many watches there may be, 10,000; WatchesPerUser is how many of
	// them one user may have: 1,000, or half of them, rounded up, if that is less; all of them
	// without Authenticate.
	Watches, WatchesPerUser int
	// ConnectionsPerAddress is how many connections one client address may have, if the
	// server listens by itself: 12,000, which is more than all watches over HTTP/1.1
	// need. If three quarters of the files that the process may have open are fewer, it is
	// that number, so that others, such as health checks, get through. The addresses of a network
	// of IPv6, those with the same first 64 bits, count as one, since one client has them all.
	ConnectionsPerAddress int
	// ReadTimeout bounds a request that neither writes nor watches until its answer begins, 60 s;
	// WriteTimeout one that writes, and the time in which the body of any request has to arrive,
	// 34 s. The deletion of a collection has the longer of the two times. [Config].MetricsHandler
	// ends in time if it heeds its request's context.
	ReadTimeout, WriteTimeout time.Duration
	// WriteStall is how long a client may take to read 96 KiB of a response, or 16 kB of
	// the events of a watch, or what is left of either; after that the response is broken
	// off: 30 s. Over WebSocket it is the time for each event.
	WriteStall time.Duration
	// BodyBytes is the largest request body in bytes: 3 MiB. A patch or an apply that makes an object
	// larger than two bodies and 64 KiB, as JSON, is refused, and so is a body in another encoding that is
	// larger than that as JSON.
	BodyBytes int64
	// EncodingBytes is how many bytes of encoded objects are kept for sharing: 32 MiB. Lists fill
	// at most half of it. The encoding of a whole object also keeps the object's state in memory,
	// which is not counted: it is about as large, or several times as large if it is unstructured.
	EncodingBytes int
	// ShutdownDelay is how long a server that shuts down still serves while /readyz
	// fails: 5 s. DrainWatches is the time over which it then ends its watches, evenly:
	// 10 s.
	ShutdownDelay, DrainWatches time.Duration
}

// withDefaults returns the limits of a server that knows its users, or does not.
func (l Limits) withDefaults(knowsUsers bool) Limits {
	reads, writes, watches := cmp.Or(l.Reads, 400), cmp.Or(l.Writes, 200), cmp.Or(l.Watches, 10_000)
	readsPerUser, writesPerUser, watchesPerUser := reads, writes, watches
	if knowsUsers {
		readsPerUser, writesPerUser, watchesPerUser = reads-reads/2, writes-writes/2, min(1000, watches-watches/2)
	}
	return Limits{
		Reads: reads, Writes: writes,
		ReadsPerUser: cmp.Or(l.ReadsPerUser, readsPerUser), WritesPerUser: cmp.Or(l.WritesPerUser, writesPerUser),
		Watches: watches, WatchesPerUser: cmp.Or(l.WatchesPerUser, watchesPerUser),
		ConnectionsPerAddress: cmp.Or(l.ConnectionsPerAddress, connectionsOf(transport.Descriptors())),
		ReadTimeout:           cmp.Or(l.ReadTimeout, time.Minute), WriteTimeout: cmp.Or(l.WriteTimeout, 34*time.Second),
		WriteStall: cmp.Or(l.WriteStall, 30*time.Second), BodyBytes: cmp.Or(l.BodyBytes, 3<<20),
		EncodingBytes: cmp.Or(l.EncodingBytes, 32<<20),
		ShutdownDelay: cmp.Or(l.ShutdownDelay, 5*time.Second), DrainWatches: cmp.Or(l.DrainWatches, 10*time.Second),
	}
}

// objectBytes is how large patches and applies may make an object: twice as large as a body, since an object has
// managed fields, too, and a status that is written separately.
func (l *Limits) objectBytes() int64 { return 64<<10 + 2*min(l.BodyBytes, math.MaxInt64/4) }

// unacknowledged is how long the host of a client that watches over HTTP/1.1 may acknowledge nothing: as long as
// one over HTTP/2 may leave pings unanswered, and not less than a client that reads nothing is given.
func (l *Limits) unacknowledged() time.Duration { return max(pingAfter+pingTimeout, l.WriteStall) }

// unadmitted is how many answers may be sent at a time to requests without a place, such as refusals. Each costs
// little more than a buffer. With fewer of them a burst of refusals would break most of itself off.
func (l *Limits) unadmitted() int { return max(400, l.Reads) }

// connectionsOf returns the default of ConnectionsPerAddress in a process that may have that many
// files open, zero if that is not known.
func connectionsOf(descriptors uint64) int {
	const enough = 12_000
	if descriptors == 0 {
		return enough
	}
	return int(max(1, min(enough, descriptors-descriptors/4)))
}

// validate returns an [*engine.ConfigError] for the first negative limit.
func (l *Limits) validate() error {
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"Reads", int64(l.Reads)}, {"Writes", int64(l.Writes)}, {"ReadsPerUser", int64(l.ReadsPerUser)}, {"WritesPerUser", int64(l.WritesPerUser)},
		{"Watches", int64(l.Watches)}, {"WatchesPerUser", int64(l.WatchesPerUser)},
		{"ConnectionsPerAddress", int64(l.ConnectionsPerAddress)},
		{"ReadTimeout", int64(l.ReadTimeout)}, {"WriteTimeout", int64(l.WriteTimeout)}, {"WriteStall", int64(l.WriteStall)},
		{"BodyBytes", l.BodyBytes}, {"EncodingBytes", int64(l.EncodingBytes)},
		{"ShutdownDelay", int64(l.ShutdownDelay)}, {"DrainWatches", int64(l.DrainWatches)},
	} {
		if limit.value < 0 {
			return &engine.ConfigError{Field: "Limits." + limit.name, Problem: "is negative; zero means the default"}
		}
	}
	return nil
}
