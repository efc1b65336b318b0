package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/watchmill/watchmill/engine"
)

func (s *scenario) watch(d *datadriven.TestData) (string, error) {
	name := d.CmdArgs[0].Key
	opts, err := s.watchOptions(d)
	if err != nil {
		return "", err
	}
	if d.Cmd == "resume" {
		opts.From = s.named(d).Revision()
		d.ScanArgs(s.t, "as", &name)
	}
	opts.Name = name
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
			o.Linearizable = true
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

// named returns the watch that the command names.
func (s *scenario) named(d *datadriven.TestData) *engine.Watch[item] {
	w := s.watches[d.CmdArgs[0].Key]
	if w == nil {
		d.Fatalf(s.t, "there is no watch %q", d.CmdArgs[0].Key)
	}
	return w
}

// read pulls what there is, without waiting for more.
func (s *scenario) read(d *datadriven.TestData) (string, error) {
	w, most := s.named(d), 1<<30
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
	events, w := s.handled[name], s.named(d)
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
	s.named(d).Stop()
	return "", nil
}

func (s *scenario) lag(d *datadriven.TestData) (string, error) {
	w := s.named(d)
	out := fmt.Sprintf("%d behind, would resume from %d", w.Lag(), w.Revision())
	if w.Stalled() {
		out += ", stalled"
	}
	return out, nil
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
