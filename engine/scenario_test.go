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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// TestScenarios runs the texts in testdata/scenarios on a deterministic host:
// nothing happens between two commands, time passes only when told to. The
// commands are:
//
//	new [age=75s] [events=N] [chunk=N] [index=FIELD] [capacity=N] [period=60s]   start an engine
//	write                        one per line: put KEY [a=b…] | delete KEY | emit KEY [a=b…]
//	                             (an attribute node=… is a field, any other a label)
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
//	close                        close the engine
func TestScenarios(t *testing.T) {
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
	fields fields.Set
}

func (i item) String() string { return i.key }

type scenario struct {
	t        *testing.T
	clock    *actors.VirtualClock
	executor *actors.Seeded
	host     *engine.Host
	backend  *memory.Backend[item]
	engine   *engine.Engine[item]
	watches  map[string]*engine.Watch[item]
	handled  map[string][]engine.Event[item]
	token    string
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{
		t:        t,
		clock:    actors.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
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
	if s.backend != nil {
		require.NoError(s.t, s.backend.Close())
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
	cfg := engine.Config[item]{
		Key:    func(i item) string { return i.key },
		Labels: func(i item) labels.Set { return i.labels },
		Fields: func(i item) fields.Set { return i.fields },
		Host:   s.host, Name: "items",
	}
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
		case "capacity":
			cfg.Capacity = new(s.number(value))
		case "period":
			cfg.BookmarkPeriod = s.duration(value)
		default:
			d.Fatalf(s.t, "unknown argument %q", arg.Key)
		}
	}
	b, err := memory.New(store.Schema[item]{Key: cfg.Key, Labels: cfg.Labels, Fields: cfg.Fields}, memory.Options{Clock: s.host.Clock()})
	if err != nil {
		return "", err
	}
	s.backend, cfg.Backend = b, b
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
	ctx := context.Background()
	var out []string
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		i := item{key: words[1], labels: labels.Set{}, fields: fields.Set{}}
		for _, attribute := range words[2:] {
			name, value, _ := strings.Cut(attribute, "=")
			if name == "node" {
				i.fields[name] = value
			} else {
				i.labels[name] = value
			}
		}
		var rev engine.Revision
		var err error
		switch words[0] {
		case "put":
			rev, err = s.engine.Put(ctx, i)
		case "emit":
			rev, err = s.engine.Emit(ctx, i)
		case "delete":
			var o *engine.Object[item]
			if o, err = s.engine.Delete(ctx, i.key, engine.DeleteOptions[item]{}); err == nil {
				rev = o.Revision
			}
		default:
			d.Fatalf(s.t, "unknown write %q", words[0])
		}
		if err != nil {
			return "", err
		}
		out = append(out, fmt.Sprintf("%s %s @%d", words[0], i.key, rev))
	}
	if d.HasArg("quiet") {
		return "", nil
	}
	return strings.Join(out, "\n"), nil
}

func (s *scenario) watch(d *datadriven.TestData) (string, error) {
	name := d.CmdArgs[0].Key
	opts, err := s.watchOptions(d)
	if err != nil {
		return "", err
	}
	if d.Cmd == "resume" {
		opts.From = s.watches[name].Revision()
		d.ScanArgs(s.t, "as", &name)
	}
	var w *engine.Watch[item]
	if d.Cmd == "handle" {
		w, err = s.engine.Handle(context.Background(), opts, func(ev engine.Event[item]) {
			if ev.Key() == "panic" {
				panic("the handler does not like this")
			}
			s.handled[name] = append(s.handled[name], ev)
		})
	} else {
		w, err = s.engine.Watch(context.Background(), opts)
	}
	if err != nil {
		return "", err
	}
	s.watches[name] = w
	return "", nil
}

func (s *scenario) watchOptions(d *datadriven.TestData) (o engine.WatchOptions, err error) {
	for _, arg := range d.CmdArgs[1:] {
		value := strings.Join(arg.Vals, ",")
		switch arg.Key {
		case "labels":
			o.Labels = value
		case "fields":
			o.Fields = value
		case "prefix":
			o.Prefix = value
		case "key":
			o.Key = value
		case "from":
			o.From = engine.Revision(s.number(value))
		case "last":
			o.Last = s.number(value)
		case "state":
			o.InitialState = true
		case "latest":
			o.Latest = true
		case "bookmarks":
			o.Bookmarks = true
		case "policy":
			err = o.Policy.UnmarshalText([]byte(value))
		case "buffer":
			o.Buffer = s.number(value)
		case "timeout":
			o.Timeout = s.duration(value)
		case "as":
		default:
			d.Fatalf(s.t, "unknown argument %q", arg.Key)
		}
	}
	return o, err
}

// read pulls what there is, without waiting for more.
func (s *scenario) read(d *datadriven.TestData) (string, error) {
	w, most := s.watches[d.CmdArgs[0].Key], 1<<30
	d.MaybeScanArgs(s.t, "n", &most)
	var events []engine.Event[item]
	for ev, err := range w.Events() {
		if errors.Is(err, engine.ErrIdle) {
			break
		}
		if err != nil {
			return show(events) + "ended: " + err.Error(), nil
		}
		if events = append(events, ev); len(events) == most {
			break
		}
	}
	if len(events) == 0 {
		return "nothing", nil
	}
	return show(events), nil
}

// show prints events a line each; a long run of them in one key only as its
// ends.
func show(events []engine.Event[item]) string {
	var out strings.Builder
	for i, ev := range events {
		if i >= 8 && i < len(events)-2 && len(events) > 12 {
			if i == 8 {
				fmt.Fprintf(&out, "… %d more …\n", len(events)-10)
			}
			continue
		}
		fmt.Fprintln(&out, ev)
	}
	return out.String()
}

func (s *scenario) got(d *datadriven.TestData) (string, error) {
	name := d.CmdArgs[0].Key
	events, w := s.handled[name], s.watches[name]
	delete(s.handled, name)
	out := show(events)
	if err := w.Err(); err != nil {
		return out + "ended: " + err.Error(), nil
	}
	if len(events) == 0 {
		return "nothing", nil
	}
	return out, nil
}

func (s *scenario) stop(d *datadriven.TestData) (string, error) {
	s.watches[d.CmdArgs[0].Key].Stop()
	return "", nil
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
	return "", s.backend.Compact(context.Background(), engine.Revision(s.number(d.CmdArgs[0].Key)))
}

func (s *scenario) readMode(arg datadriven.CmdArg) (engine.Read, bool) {
	switch arg.Key {
	case "at":
		return engine.Exactly(engine.Revision(s.number(arg.Vals[0]))), true
	case "not-older":
		return engine.NotOlderThan(engine.Revision(s.number(arg.Vals[0]))), true
	case "cached":
		return engine.Cached(), true
	}
	return engine.Latest(), false
}

func (s *scenario) list(d *datadriven.TestData) (string, error) {
	var o engine.ListOptions
	for _, arg := range d.CmdArgs {
		if read, ok := s.readMode(arg); ok {
			o.Read = read
			continue
		}
		value := strings.Join(arg.Vals, ",")
		switch arg.Key {
		case "labels":
			o.Labels = value
		case "fields":
			o.Fields = value
		case "prefix":
			o.Prefix = value
		case "key":
			o.Key = value
		case "limit":
			o.Limit = s.number(value)
		case "continue":
			o.Continue = s.token
		default:
			d.Fatalf(s.t, "unknown argument %q", arg.Key)
		}
	}
	l, err := s.engine.List(context.Background(), o)
	if err != nil {
		return "", err
	}
	var keys []string
	for _, object := range l.Items {
		keys = append(keys, fmt.Sprintf("%s@%d", object.Key, object.Revision))
	}
	out := fmt.Sprintf("at %d: %s", l.Revision, strings.Join(keys, " "))
	if s.token = l.Continue; s.token != "" {
		out += fmt.Sprintf(" (%d more)", l.Remaining)
	}
	return out, nil
}

func (s *scenario) get(d *datadriven.TestData) (string, error) {
	var o engine.GetOptions
	for _, arg := range d.CmdArgs[1:] {
		o.Read, _ = s.readMode(arg)
	}
	object, err := s.engine.Get(context.Background(), d.CmdArgs[0].Key, o)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s@%d %v %v", object.Key, object.Revision, object.Labels, object.Fields), nil
}

func (s *scenario) lag(d *datadriven.TestData) (string, error) {
	w := s.watches[d.CmdArgs[0].Key]
	out := fmt.Sprintf("%d behind, would resume from %d", w.Lag(), w.Revision())
	if w.Stalled() {
		out += ", stalled"
	}
	return out, nil
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
