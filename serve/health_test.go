package serve_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// logged is the text of a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.text.String()), "\n")
}

// A check of the program's fails /readyz and, if it is one of life, /livez. Its error is for the log.
func TestHealth_HasTheChecksOfTheProgram(t *testing.T) {
	var log logged
	broken := errors.New("/var/lib/secret has failed")
	why := map[string]error{}
	check := func(name string, live bool) serve.Check {
		return serve.Check{Name: name, Live: live, Why: func() error { return why[name] }}
	}
	inBubble(t, func(t *testing.T, s *server) {
		s.becomes("/readyz", "ok")
		require.Equal(t, "[+]ping ok\n[+]storage ok\n[+]shutdown ok\n[+]disk ok\n[+]peer ok\nreadyz check passed\n", s.get("/readyz?verbose").body)
		why["peer"] = broken
		require.Equal(t, "[-]peer failed: the server's log says why\nreadyz check failed\n", s.get("/readyz/peer").body)
		require.Equal(t, "ok", s.get("/livez").body)
		why["disk"] = broken
		for _, path := range []string{"/readyz", "/livez", "/livez/disk", "/healthz"} {
			a := s.get(path)
			require.Equal(t, http.StatusInternalServerError, a.code, path)
			require.NotContains(t, a.body, "secret")
		}
		require.Equal(t, "ok", s.get("/readyz/storage").body)
		clear(why)
		require.Equal(t, "ok", s.get("/readyz").body)
	}, func(c *serve.Config) {
		c.Checks = []serve.Check{check("disk", true), check("peer", false)}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	all := strings.Join(log.lines(), "\n")
	for _, name := range []string{"peer", "disk"} {
		require.Equal(t, len(protocols), strings.Count(all, `check=`+name+` error="/var/lib/secret has failed"`), "%s: once in ten seconds, whatever others do:\n%s", name, all)
	}
}

// A check that the client excludes is not called, and fails no path of all checks.
func TestHealth_LeavesOutWhatIsExcluded(t *testing.T) {
	called := 0
	disk := serve.Check{Name: "disk", Why: func() error { called++; return errors.New("is full") }}
	inBubble(t, func(t *testing.T, s *server) {
		called = 0
		s.becomes("/readyz/storage", "ok")
		require.Equal(t, "ok", s.get("/readyz?exclude=disk").body)
		require.Equal(t, "[+]ping excluded: ok\n[+]storage ok\n[+]shutdown ok\n[+]disk excluded: ok\nwarn: there is no check \"d\\nk\" to exclude\nreadyz check passed\n",
			s.get("/readyz?verbose&exclude=disk&exclude=ping&exclude=d%0Ak").body)
		require.Zero(t, called)
		require.Equal(t, http.StatusInternalServerError, s.get("/readyz?exclude=ping").code)
		require.Equal(t, http.StatusInternalServerError, s.get("/readyz/disk?exclude=disk").code)
		require.Equal(t, 2, called)
	}, func(c *serve.Config) { c.Checks = []serve.Check{disk} })
}

// A check that panics fails.
func TestHealth_ContainsThePanicOfACheck(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		require.Equal(t, http.StatusInternalServerError, s.get("/readyz").code)
		require.Equal(t, 404, s.get("/readyz/none").code)
	}, func(c *serve.Config) {
		c.Checks = []serve.Check{{Name: "disk", Why: func() error { panic("no") }}}
	})
}

// Storage that is closed under a server has ended for good. Clients are told once, and do not come back
// for it; what is balanced over several servers goes to others.
func TestHealth_IsNotReadyOnceStorageHasEndedForGood(t *testing.T) {
	var storage *memory.Backend
	var log logged
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		var err error
		storage, err = memory.New(registry.Schema(*w), memory.Options{})
		require.NoError(t, err)
		w.Engine.Backend, c.Logger = storage, slog.New(slog.NewTextHandler(&log, nil))
	})
	from := "?watch=1&resourceVersion=" + s.create("a", 1)
	s.becomes("/readyz", "ok")
	w := s.watch(inDefault + from)
	require.NoError(t, storage.Close())
	end, _ := w.next()
	require.Equal(t, "ERROR 503 ServiceUnavailable", end.Type+" "+end.str("code")+" "+end.str("reason"))

	for _, a := range []answer{
		s.get(inDefault), s.get(inDefault + "/a"), s.get(inDefault + "?watch=1"), s.get(inDefault + from),
		s.do("POST", inDefault, `{"metadata":{"name":"b"}}`), s.do("DELETE", inDefault+"/a", ""), s.do("DELETE", inDefault, ""),
	} {
		require.Equal(t, "503 ServiceUnavailable", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
		require.Empty(t, a.header.Get("Retry-After"))
		require.Contains(t, a.str("message"), "closed")
	}
	require.Equal(t, "a", s.get(inDefault+"?resourceVersion=0").str("items.0.metadata.name"))
	ready := s.get("/readyz")
	require.Equal(t, http.StatusInternalServerError, ready.code)
	require.Contains(t, ready.body, "[-]storage failed: kinds whose storage has ended for good: 1\n")
	require.Contains(t, strings.Join(log.lines(), "\n"), `check=storage error="kinds whose storage has ended for good: widgets.example.com/v1"`)
	require.Equal(t, "ok", s.get("/livez").body)
	uncached := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Engine.Backend, w.Engine.NoCache = storage, true })
	a := uncached.get(inDefault + from)
	require.Equal(t, "503 ServiceUnavailable", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
	require.Empty(t, a.header.Get("Retry-After"))
	s.handler.Remove(s.widgets)
	require.Equal(t, "ok", s.get("/readyz").body)
}

// Health checks do not call storage. Without a cache a kind learns from a request that storage was closed.
func TestHealth_IsNotReadyOnceARequestHasFoundStorageClosed(t *testing.T) {
	for what, request := range map[string]func(s *server) answer{
		"get":    func(s *server) answer { return s.get(inDefault + "/a") },
		"list":   func(s *server) answer { return s.get(inDefault) },
		"watch":  func(s *server) answer { return s.get(inDefault + "?watch=1") },
		"create": func(s *server) answer { return s.do("POST", inDefault, `{"metadata":{"name":"b"}}`) },
		"delete": func(s *server) answer { return s.do("DELETE", inDefault+"/a", "") },
	} {
		t.Run(what, func(t *testing.T) {
			var storage *memory.Backend
			s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
				var err error
				storage, err = memory.New(registry.Schema(*w), memory.Options{})
				require.NoError(t, err)
				w.Engine.Backend, w.Engine.NoCache = storage, true
			})
			s.create("a", 1)
			s.becomes("/readyz", "ok")
			require.NoError(t, storage.Close())
			require.Equal(t, http.StatusServiceUnavailable, request(s).code)
			require.Contains(t, s.get("/readyz").body, "[-]storage failed: kinds whose storage has ended for good: 1\n")
			require.Equal(t, "ok", s.get("/livez").body)
		})
	}
}

// A kind that is closed cannot be read and written at this server, though perhaps at another one. The log has its name,
// and the answer does not.
func TestHealth_IsNotReadyWhileAClosedKindIsServed(t *testing.T) {
	for _, uncached := range []bool{false, true} {
		for what, end := range map[string]func(*registry.Store[Widget]) error{
			"closed":           (*registry.Store[Widget]).Close,
			"drained":          func(w *registry.Store[Widget]) error { return w.Engine().Drain(t.Context()) },
			"left by its host": func(w *registry.Store[Widget]) error { return w.Engine().Host().Close() },
		} {
			t.Run(fmt.Sprintf("%s, without a cache: %v", what, uncached), func(t *testing.T) {
				var log logged
				s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
					w.Engine.NoCache, c.Logger = uncached, slog.New(slog.NewTextHandler(&log, nil))
				})
				s.becomes("/readyz", "ok")
				require.NoError(t, end(s.widgets))
				ready := s.get("/readyz")
				require.Equal(t, http.StatusInternalServerError, ready.code)
				require.Contains(t, ready.body, "[-]storage failed: kinds that are closed: 1\n")
				require.Equal(t, []string{"ok", "ok"}, []string{s.get("/livez").body, s.get("/readyz/ping").body})
				require.Len(t, log.lines(), 1)
				require.Contains(t, log.lines()[0], `msg="a health check fails" check=storage error="kinds that are closed: widgets.example.com/v1"`)
				s.handler.Remove(s.widgets)
				require.Equal(t, "ok", s.get("/readyz").body)
			})
		}
	}
}

// departing is a kind that is removed, and then closed, while a health check asks for its readiness.
type departing struct {
	registry.Resource
	depart func()
}

func (d *departing) Resources() []registry.Resource { return []registry.Resource{d} }

func (d *departing) Readiness() engine.Readiness {
	d.depart()
	return d.Resource.Readiness()
}

// A kind that a server does not serve any more is none of its health, however a check meets the change.
func TestHealth_IsReadyWhileAKindIsReplacedAndClosed(t *testing.T) {
	for name, change := range map[string]func(s *serve.Server, old serve.Provider) error{
		"Replace": func(s *serve.Server, old serve.Provider) error { return s.Replace(old, newLater(t)) },
		"Remove":  func(s *serve.Server, old serve.Provider) error { s.Remove(old); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var log logged
			s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			s.becomes("/readyz", "ok")
			later := newLater(t)
			kind := &departing{Resource: later.Resources()[0]}
			kind.depart = sync.OnceFunc(func() {
				if err := errors.Join(change(s.handler, kind), s.handler.WaitUnused(t.Context(), kind), later.Close()); err != nil {
					t.Error(err)
				}
			})
			require.NoError(t, s.handler.Add(kind))
			require.Equal(t, "ok", s.get("/readyz").body)
			require.Equal(t, []string{""}, log.lines())
		})
	}
}

func TestHealth_RefusesWrongChecks(t *testing.T) {
	well := func() error { return nil }
	for problem, checks := range map[string][]serve.Check{
		`Checks[0] has the name ""; give letters`:            {{Why: well}},
		`Checks[0] has the name "a/b"; give letters`:         {{Name: "a/b", Why: well}},
		"Checks[0] has the name storage, which another":      {{Name: "storage", Why: well}},
		"Checks[1] has the name disk, which another one has": {{Name: "disk", Why: well}, {Name: "disk", Why: well}},
		"Checks[0] has no function Why":                      {{Name: "disk"}},
	} {
		_, err := serve.New(serve.Config{Checks: checks})
		require.ErrorContains(t, err, problem)
	}
}

// Storage that fails for an hour fails each request. The log says so at once, and then once in ten
// seconds, with how many failed in between.
func TestLog_SaysThatStorageFailsButNotEachTime(t *testing.T) {
	var log logged
	overStorage(t, &log, func(storage *faulty.Backend, post func(query string) int) {
		down := storage.Add(faulty.Rule{Do: faulty.Fail(errors.New("no space left"))})
		for range 3600 {
			require.Equal(t, 500, post(""))
			time.Sleep(time.Second)
		}
		down.Remove()
		require.Equal(t, 201, post(""))
	})
	lines := log.lines()
	require.Len(t, lines, 360)
	require.Contains(t, lines[0], `msg="a request failed" verb=create path=`+inDefault+` code=500 error=`)
	require.Contains(t, lines[0], "no space left")
	require.NotContains(t, lines[0], "others=")
	require.Contains(t, lines[1], "others=9")
}

// A disk that does not answer is in the log, too, but not a client that waits for less.
func TestLog_SaysThatStorageHangs(t *testing.T) {
	var log logged
	overStorage(t, &log, func(storage *faulty.Backend, post func(query string) int) {
		down := storage.Add(faulty.Rule{Do: faulty.Hang()})
		require.Equal(t, 504, post("?timeout=1s"))
		require.Equal(t, []string{""}, log.lines())
		require.Equal(t, 504, post(""))
		down.Remove()
	})
	require.Len(t, log.lines(), 1)
	require.Contains(t, log.lines()[0], "verb=create path="+inDefault+` code=504 error="context deadline exceeded"`)
}

// overStorage runs a test in virtual time, with storage that fails as it is told, and a function that
// creates a widget.
func overStorage(t *testing.T, log *logged, test func(storage *faulty.Backend, post func(query string) int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := widgetConfig()
		beneath, err := memory.New(registry.Schema(cfg), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(beneath, faulty.Options{})
		cfg.Engine.Backend = storage
		widgets, err := registry.New(cfg)
		require.NoError(t, err)
		handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, Logger: slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		test(storage, func(query string) int {
			w := &codeRecorder{header: http.Header{}}
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost"+inDefault+query, strings.NewReader(`{"metadata":{"generateName":"a"}}`))
			require.NoError(t, err)
			handler.ServeHTTP(w, req)
			return w.code
		})
		require.NoError(t, widgets.Close())
	})
}

// codeRecorder is a ResponseWriter that keeps the status alone.
type codeRecorder struct {
	header http.Header
	code   int
}

func (r *codeRecorder) Header() http.Header         { return r.header }
func (r *codeRecorder) WriteHeader(code int)        { r.code = code }
func (r *codeRecorder) Write(p []byte) (int, error) { return len(p), nil }
