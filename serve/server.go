package serve

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve/internal/answer"
	"github.com/watchmill/watchmill/serve/internal/encode"
	"github.com/watchmill/watchmill/serve/internal/inflight"
	"github.com/watchmill/watchmill/usercode"
)

// Server serves resources; it is an http.Handler, safe for concurrent use. Make one with
// [New]. To serve requests it starts goroutines only for watches: one while a watch begins, another
// one over HTTP/2, and two that last if the watch takes over its connection; see [Server.Harden].
type Server struct {
	cfg       Config
	limits    Limits
	log       *slog.Logger
	hosts     map[string]bool
	origins   *http.CrossOriginProtection
	kinds     atomic.Pointer[kinds]
	started   atomic.Bool // all kinds have been read
	changing  sync.Mutex  // held while kinds is replaced; guards leaving
	leaving   []*uses     // of providers that were removed
	encodings *encode.Cache
	compress  *answer.Compressor // nil: answers are not compressed
	running   *running
	limiter   *inflight.Limiter
	draining  atomic.Int32 // serving, unready or refusing
	counts    counters
	faults    failures   // of requests
	unhealthy []failures // of each check of the program
	unstored  failures   // of the check of storage
	crowded   failures   // of addresses
	unknown   failures   // of authentication
}

// New returns a server. An error is an [*engine.ConfigError] that names the field.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, limits: cfg.Limits.withDefaults(cfg.Authenticate != nil),
		log:   usercode.Logger(cmp.Or(cfg.Logger, slog.Default()), func(*usercode.PanicError) {}),
		hosts: map[string]bool{}, origins: http.NewCrossOriginProtection(), unhealthy: make([]failures, len(cfg.Checks)),
	}
	for _, host := range cfg.Hosts {
		s.hosts[strings.ToLower(host)] = true
	}
	s.kinds.Store(&kinds{})
	if err := s.Add(cfg.Resources...); err != nil {
		return nil, err
	}
	if len(s.kinds.Load().resources) == 0 {
		return nil, &engine.ConfigError{Field: "Resources", Problem: "is empty; give what registry.New returns"}
	}
	s.encodings = encode.NewCache(s.limits.EncodingBytes)
	if cfg.CompressAbove > 0 {
		s.compress = answer.NewCompressor(cfg.CompressAbove)
	}
	s.running = newRunning()
	s.limiter = inflight.NewLimiter(inflight.Limits{
		Reads: s.limits.Reads, ReadsPerUser: s.limits.ReadsPerUser, Writes: s.limits.Writes, WritesPerUser: s.limits.WritesPerUser,
		Watches: s.limits.Watches, WatchesPerUser: s.limits.WatchesPerUser, Unadmitted: s.limits.unadmitted(),
	})
	return s, nil
}
