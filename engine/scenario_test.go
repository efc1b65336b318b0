package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// TestEngine_Scenarios runs the texts in testdata/scenarios on a deterministic host:
// nothing happens between two commands, time passes only when told to. The
// commands are:
//
//	new [age=75s] [events=N] [chunk=N] [index=FIELD] [capacity=N] [period=60s]   start an engine
//	write [times=N] [at-once]    one per line: put KEY [a=b…] | delete KEY | emit KEY [a=b…]
//	                             (an attribute node=… is a field, any other a label); N times,
//	                             with a label n that counts, prints the last; at-once: before
//	                             the engine has had a turn
//	watch NAME [labels=…] [fields=…] [prefix=…] [key=…] [from=N] [last=N] [state] [latest] [bookmarks] [policy=…] [buffer=N] [timeout=…]
//	handle NAME …                the same, with a handler that notes what it gets
//	read NAME [n=N]              what the watch has, at most N events
//	got NAME                     what the handler was given since the last time
//	resume NAME as=NEW …         a new watch from where NAME's consumer stands
//	stop NAME                    the consumer stops the watch
//	advance D                    time passes
//	jump D                       the clock is set by D, without the time passing
//	compact REV                  storage forgets history
//	list … [at=N | not-older=N | cached] [limit=N] [continue]
//	get KEY [at=N | not-older=N | cached]
//	lag NAME                     how far the watch is behind, and whether it is stalled
//	stats FIELD…                 the engine's figures
//	break                        the connection to storage breaks; it can be had again at once
//	down, up                     storage cannot be reached; it can be again
//	restore                      storage is replaced by an empty one: it goes back in time
//	source                       how often storage was listed and watched
//	close                        close the engine
func TestEngine_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := newScenario(t)
		defer s.close()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.run(d)
		})
	})
}

// item is the object of the scenarios.
type item struct {
	key    string
	labels labels.Set
	node   string
}

func (i item) String() string { return i.key }

func itemConfig() engine.Config[item] {
	return engine.Config[item]{
		Key:    func(i item) string { return i.key },
		Labels: func(i item) labels.Set { return i.labels },
		Fields: engine.Fields[item]{"node": func(i item) string { return i.node }},
	}
}

type scenario struct {
	t        *testing.T
	clock    *clock.Virtual
	executor *actors.Seeded
	host     *engine.Host
	storage  *faulty.Backend
	down     *faulty.Fault
	engine   *engine.Engine[item]
	watches  map[string]*engine.Watch[item]
	handled  map[string][]engine.Event[item]
	token    string
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{
		t:        t,
		clock:    clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		executor: actors.NewSeeded(1),
		watches:  map[string]*engine.Watch[item]{},
		handled:  map[string][]engine.Event[item]{},
	}
	var err error
	s.host, err = engine.NewHost(engine.HostConfig{Clock: s.clock, Executor: s.executor, Seed: 1})
	require.NoError(t, err)
	return s
}

func (s *scenario) close() {
	if s.engine != nil {
		require.NoError(s.t, s.engine.Close())
	}
	if s.storage != nil {
		require.NoError(s.t, s.storage.Close())
	}
	require.Zero(s.t, s.host.Actors(), "actors outlive the engine")
	require.Zero(s.t, s.host.Timers(), "timers outlive the engine")
	require.NoError(s.t, s.host.Close())
}

// run carries out one command and returns what it shows.
func (s *scenario) run(d *datadriven.TestData) string {
	commands := map[string]func(*datadriven.TestData) (string, error){
		"new": s.start, "write": s.write, "watch": s.watch, "handle": s.watch, "resume": s.watch,
		"read": s.read, "got": s.got, "stop": s.stop, "advance": s.advance, "jump": s.advance, "compact": s.compact,
		"list": s.list, "get": s.get, "lag": s.lag, "stats": s.stats, "close": s.shut,
		"break": s.cut, "down": s.cut, "up": s.reach, "restore": s.restore, "source": s.asked,
	}
	command, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(s.t, "unknown command %q", d.Cmd)
	}
	out, err := command(d)
	s.executor.Run()
	if err != nil {
		return "error: " + err.Error()
	}
	if out == "" {
		return "ok"
	}
	return out
}

func (s *scenario) start(d *datadriven.TestData) (string, error) {
	cfg := itemConfig()
	cfg.Host, cfg.Name = s.host, "items"
	for _, arg := range d.CmdArgs {
		switch value := arg.Vals[0]; arg.Key {
		case "age":
			cfg.Window.MinAge = s.duration(value)
		case "events":
			cfg.Window.MaxEvents = s.number(value)
		case "chunk":
			cfg.Window.ChunkSize = s.number(value)
		case "index":
			cfg.Index = append(cfg.Index, value)
		case "no-cache":
			cfg.NoCache = value == "true"
		case "period":
			cfg.BookmarkPeriod = s.duration(value)
		default:
			d.Fatalf(s.t, "unknown argument %q", arg.Key)
		}
	}
	beneath, err := s.newStorage()
	if err != nil {
		return "", err
	}
	s.storage = faulty.New(beneath, faulty.Options{})
	cfg.Backend = s.storage
	s.engine, err = engine.New(cfg)
	return "", err
}

func (s *scenario) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

func (s *scenario) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	return d
}

func (s *scenario) write(d *datadriven.TestData) (string, error) {
	times := 1
	d.MaybeScanArgs(s.t, "times", &times)
	var out []string
	for n := range times {
		for line := range strings.Lines(d.Input) {
			words := strings.Fields(line)
			if times > 1 {
				words = append(words, fmt.Sprint("n=", n+1))
			}
			rev, err := s.writeOne(d, words)
			if err != nil {
				return "", err
			}
			out = append(out, fmt.Sprintf("%s %s @%d", words[0], words[1], rev))
			if !d.HasArg("at-once") {
				s.executor.Run()
			}
		}
	}
	if times > 1 {
		out = out[len(out)-1:]
	}
	return strings.Join(out, "\n"), nil
}

func (s *scenario) writeOne(d *datadriven.TestData, words []string) (engine.Revision, error) {
	ctx := context.Background()
	i := item{key: words[1], labels: labels.Set{}}
	for _, attribute := range words[2:] {
		name, value, _ := strings.Cut(attribute, "=")
		if name == "node" {
			i.node = value
		} else {
			i.labels[name] = value
		}
	}
	switch words[0] {
	case "put":
		o, err := s.engine.Put(ctx, i)
		if err != nil {
			return 0, err
		}
		return o.Revision, nil
	case "emit":
		return s.engine.Emit(ctx, i)
	case "delete":
		o, err := s.engine.Delete(ctx, i.key, engine.DeleteOptions{})
		if err != nil {
			return 0, err
		}
		return o.Revision, nil
	}
	d.Fatalf(s.t, "unknown write %q", words[0])
	return 0, nil
}

// advance lets time pass, a second at a time so that what runs in between runs.
func (s *scenario) advance(d *datadriven.TestData) (string, error) {
	left := s.duration(d.CmdArgs[0].Key)
	if d.Cmd == "jump" {
		s.clock.Jump(left)
		return "", nil
	}
	for ; left > 0; left -= time.Second {
		s.clock.Advance(min(left, time.Second))
		s.executor.Run()
	}
	return "", nil
}

func (s *scenario) compact(d *datadriven.TestData) (string, error) {
	return "", s.storage.Compact(context.Background(), engine.Revision(s.number(d.CmdArgs[0].Key)))
}

// stats shows the figures asked for, by their names in engine.Stats.
func (s *scenario) stats(d *datadriven.TestData) (string, error) {
	all := strings.Fields(strings.Trim(fmt.Sprintf("%+v", s.engine.Stats()), "{}"))
	var out []string
	for _, arg := range d.CmdArgs {
		i := slices.IndexFunc(all, func(f string) bool { return strings.HasPrefix(f, arg.Key+":") })
		if i < 0 {
			d.Fatalf(s.t, "no figure %q", arg.Key)
		}
		out = append(out, all[i])
	}
	return strings.Join(out, " "), nil
}

func (s *scenario) shut(*datadriven.TestData) (string, error) { return "", s.engine.Close() }

var errUnreachable = errors.New("storage cannot be reached")

// newStorage returns empty storage.
func (s *scenario) newStorage() (*memory.Backend, error) {
	return memory.New(itemConfig().Schema(), memory.Options{Clock: s.host.Clock(), FirstRevision: 1})
}

// cut breaks the connection to storage, for good if the command is down. What
// writes does not use that connection.
func (s *scenario) cut(d *datadriven.TestData) (string, error) {
	if d.Cmd == "down" {
		s.down = s.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList, faulty.OpWatch}, Do: faulty.Fail(errUnreachable)})
	}
	s.storage.BreakWatches(errUnreachable)
	return "", nil
}

func (s *scenario) reach(*datadriven.TestData) (string, error) {
	s.down.Remove()
	return "", nil
}

func (s *scenario) restore(*datadriven.TestData) (string, error) {
	empty, err := s.newStorage()
	if err != nil {
		return "", err
	}
	old := s.storage.Replace(empty)
	s.storage.BreakWatches(errUnreachable)
	return "", old.Close()
}

func (s *scenario) asked(*datadriven.TestData) (string, error) {
	return fmt.Sprintf("listed %d, watched %d", s.storage.Calls(faulty.OpList), s.storage.Calls(faulty.OpWatch)), nil
}
