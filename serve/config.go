package serve

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// Provider has resources to serve. A [registry.Store] is one.
type Provider interface{ Resources() []registry.Resource }

// Config says what a server serves, and which users may do what.
type Config struct {
	// Resources are the kinds. At least one is required, each group, version and
	// resource once.
	Resources []Provider
	// Authenticate returns the user of a request; an error is answered with 401. Nil
	// means that every user is [Anonymous].
	Authenticate func(r *http.Request) (User, error)
	// Authorize refuses a request with an error, which is answered with 403 and
	// its text. Nil allows everything.
	Authorize func(ctx context.Context, u User, r *Request) error
	// Audit is told of every request that was served, when it is over. It must not
	// block.
	Audit func(ctx context.Context, e Audited)
	// Hosts are the names that clients may call the server by, beside addresses
	// and localhost.
	Hosts []string
	// Limits bounds what clients can take.
	Limits Limits
	// WebSocket has watches sent as messages to clients that ask for it: what
	// websocket.New of package serve/websocket returns. Nil means that such requests
	// are answered like others.
	WebSocket Upgrader
	// Version is the gitVersion that /version tells; "" means [ProtocolVersion].
	Version string
	// Metrics is told of each request and of each event of a watch; nil means that
	// nothing is.
	Metrics Metrics
	// MetricsHandler answers /metrics, for users that Authorize lets get it; nil means
	// that there is no such path.
	MetricsHandler http.Handler
	// Logger is told of failures of the server's own; nil means slog.Default.
	Logger *slog.Logger
}

// ProtocolVersion is the Kubernetes version whose protocol is spoken.
const ProtocolVersion = "v1.37.2"

// Limits bounds what clients can take. Zero values mean the defaults.
type Limits struct {
	// Reads and Writes are how many requests may be in flight, watches not among
	// them: 400 and 200.
	Reads, Writes int
	// Watches are how many watches there may be, 10,000, and WatchesPerUser of one
	// user, 1,000.
	Watches, WatchesPerUser int
	// ConnectionsPerAddress are how many connections one address may have, if the
	// server listens by itself: 12,000, which is more than all watches over HTTP/1.1.
	ConnectionsPerAddress int
	// ReadTimeout bounds a request that is no watch, 60 s, WriteTimeout one that
	// writes, 34 s.
	ReadTimeout, WriteTimeout time.Duration
	// WriteStall ends a response whose client takes nothing for so long: 30 s.
	WriteStall time.Duration
	// BodyBytes is the largest body of a request: 3 MiB.
	BodyBytes int64
	// EncodingBytes is how much is kept of encoded objects, to be shared: 32 MiB. Lists
	// fill at most half of it.
	EncodingBytes int
	// ShutdownDelay is how long a server that shuts down goes on serving while it
	// says that it is not ready: 5 s. DrainWatches is the time over which its watches
	// are then ended, evenly: 10 s.
	ShutdownDelay, DrainWatches time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Reads: cmp.Or(l.Reads, 400), Writes: cmp.Or(l.Writes, 200),
		Watches: cmp.Or(l.Watches, 10_000), WatchesPerUser: cmp.Or(l.WatchesPerUser, 1000),
		ConnectionsPerAddress: cmp.Or(l.ConnectionsPerAddress, 12_000),
		ReadTimeout:           cmp.Or(l.ReadTimeout, time.Minute), WriteTimeout: cmp.Or(l.WriteTimeout, 34*time.Second),
		WriteStall: cmp.Or(l.WriteStall, 30*time.Second), BodyBytes: cmp.Or(l.BodyBytes, 3<<20),
		EncodingBytes: cmp.Or(l.EncodingBytes, 32<<20),
		ShutdownDelay: cmp.Or(l.ShutdownDelay, 5*time.Second), DrainWatches: cmp.Or(l.DrainWatches, 10*time.Second),
	}
}

// validate returns an [*engine.ConfigError] for a negative limit.
func (l *Limits) validate() error {
	for name, n := range map[string]int64{
		"Reads": int64(l.Reads), "Writes": int64(l.Writes), "Watches": int64(l.Watches), "WatchesPerUser": int64(l.WatchesPerUser),
		"ConnectionsPerAddress": int64(l.ConnectionsPerAddress),
		"ReadTimeout":           int64(l.ReadTimeout), "WriteTimeout": int64(l.WriteTimeout), "WriteStall": int64(l.WriteStall),
		"BodyBytes": l.BodyBytes, "EncodingBytes": int64(l.EncodingBytes),
		"ShutdownDelay": int64(l.ShutdownDelay), "DrainWatches": int64(l.DrainWatches),
	} {
		if n < 0 {
			return &engine.ConfigError{Field: "Limits." + name, Problem: "is negative; zero means the default"}
		}
	}
	return nil
}
