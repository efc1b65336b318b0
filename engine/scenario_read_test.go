package engine_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/watchmill/watchmill/engine"
)

// The scenarios' commands that read.

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
