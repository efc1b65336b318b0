package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/watchmill/watchmill/store"
)

// plainName matches the valid names of groups, fields and labels.
var plainName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9./_-]*[A-Za-z0-9])?$`)

// nameFix is the fix of an error about a name that plainName does not match.
const nameFix = "use letters, digits, and between them dots, dashes, slashes or underscores"

func (c *checker) writer(at string, w *Writer, s *Scenario) {
	c.members(at+".count", w.Count, maxWorkers)
	c.rate(at+".rate", w.Rate, w.Trace == "")
	oneOf(c, at+".shape", w.Shape, Steady, Poisson, Bursts)
	c.count(at+".burst", w.Burst, MaxRate)
	if w.Burst > 0 && w.Shape != Bursts {
		c.wrong(at+".burst", "is only for shape bursts", "add shape: bursts, or leave it out")
	}
	c.mix(at+".mix", w.Mix)
	if w.Hot != 0 && !(w.Hot > 1 && w.Hot <= 100) {
		c.wrong(at+".hot", fmt.Sprintf("is %v", w.Hot), "write an exponent above 1, up to 100, such as 1.2, or leave it out")
	} else if w.Hot != 0 && s.Objects.Count == 0 {
		c.wrong(at+".hot", "there are no objects to draw from", "add objects.count, or leave it out")
	} else if w.Hot != 0 && w.Mix.Total() > 0 && w.Mix.Update+w.Mix.Delete == 0 {
		c.wrong(at+".hot", "means nothing without updates and deletions, which draw objects", "add one of them to mix, or leave it out")
	}
	c.share(at+".move", w.Move)
	if w.Move > 0 && len(s.Objects.Fields)+len(s.Objects.Labels) == 0 {
		c.wrong(at+".move", "objects have no fields or labels to change", "add objects.fields, or leave it out")
	} else if w.Move > 0 && w.Mix.Total() > 0 && w.Mix.Update == 0 {
		c.wrong(at+".move", "means nothing without updates", "add update to mix, or leave it out")
	}
	c.duration(at+".start", w.Start)
	c.duration(at+".stop", w.Stop)
	c.beforeEnd(at+".start", w.Start, s)
	if w.Stop > 0 && w.Stop <= w.Start {
		c.wrong(at+".stop", "is not after start", "make it later than "+w.Start.String())
	}
	c.trace(at, w, s)
}

// mix checks the weights of the kinds of writes. If a file has weights, one must be above
// zero: a mix without any is that of updates.
func (c *checker) mix(at string, m Mix) {
	for _, part := range []struct {
		name   string
		weight float64
	}{{"create", m.Create}, {"update", m.Update}, {"delete", m.Delete}, {"emit", m.Emit}} {
		if !(part.weight >= 0 && part.weight <= 1e9) {
			c.wrong(at+"."+part.name, fmt.Sprintf("is %v", part.weight), "write a weight from 0 to 1e9, such as 8")
		}
	}
	if m == (Mix{}) && c.written.has(at+".create", at+".update", at+".delete", at+".emit") {
		c.wrong(at, "has only weights of 0", "give at least one kind of write a weight above 0, or leave mix out to have updates")
	}
}

// trace checks that the trace of a group can be opened, and that no field is set
// that contradicts it.
func (c *checker) trace(at string, w *Writer, s *Scenario) {
	if w.Trace == "" {
		return
	}
	if w.Rate != 0 || w.Shape != "" || w.Mix != (Mix{}) || w.Hot != 0 || w.Move != 0 || w.Count > 1 {
		c.wrong(at+".trace", "is set together with other fields that say what to write", "leave out count, rate, shape, burst, mix, hot and move")
	}
	r, err := s.openTrace(w.Trace)
	if err != nil {
		c.wrong(at+".trace", err.Error(), traceFix)
		return
	}
	r.Close()
}

func (c *checker) watcher(at string, w *Watcher, s *Scenario) {
	c.members(at+".count", w.Count, MaxWatchers)
	c.selection(at, Selection{Labels: w.Labels, Fields: w.Fields, Prefix: w.Prefix, Key: w.Key}, s)
	if w.Key != "" && w.Prefix != "" {
		c.wrong(at+".key", "is set together with prefix", "set only one of them")
	}
	c.duration(at+".start", w.Start)
	c.duration(at+".spread", w.Spread)
	c.beforeEnd(at+".start", w.Start, s)
	if w.Spread > 0 {
		c.beforeEnd(at+".spread", w.Start+w.Spread, s)
	}
	oneOf(c, at+".policy", w.Policy, Park, Terminate, Conflate)
	c.count(at+".buffer", w.Buffer, maxBuffer)
	oneOf(c, at+".consumer", w.Consumer, Batches, Handler, Channel, Follow, Queue)
	c.consume(at, w.Consume)
	c.duration(at+".reconnect.every", w.Reconnect.Every)
	c.duration(at+".reconnect.away", w.Reconnect.Away)
	if w.Reconnect.Away > 0 && w.Reconnect.Every == 0 {
		c.wrong(at+".reconnect.away", "is without every", "write how often too, such as every: 5s")
	}
}

func (c *checker) consume(at string, slow Consume) {
	c.rate(at+".consume.rate", slow.Rate, false)
	c.duration(at+".consume.every", slow.Every)
	c.duration(at+".consume.pause", slow.Pause)
	if (slow.Every > 0) != (slow.Pause > 0) {
		c.wrong(at+".consume", "has one of every and pause without the other", "write both, such as every: 2s, pause: 500ms")
	}
}

func (c *checker) reader(at string, r *Reader, s *Scenario) {
	c.members(at+".count", r.Count, maxWorkers)
	c.rate(at+".rate", r.Rate, true)
	oneOf(c, at+".op", r.Op, List, Get)
	oneOf(c, at+".mode", r.Mode, Latest, Cached, NotOlder, Exact)
	c.selection(at, Selection{Labels: r.Labels, Fields: r.Fields, Prefix: r.Prefix}, s)
	c.count(at+".limit", r.Limit, MaxObjects)
	if r.Op == Get && (r.Labels != "" || r.Fields != "" || r.Prefix != "" || r.Limit != 0) {
		c.wrong(at+".op", "is get, beside fields that narrow a list", "leave out labels, fields, prefix and limit, or list")
	}
	if r.Mode == Cached && r.Op != Get && r.Limit != 0 {
		c.wrong(at+".limit", "means nothing for mode cached, which lists everything at once", "leave it out")
	}
	if r.Op == Get && s.Objects.Count == 0 {
		c.wrong(at+".op", "there are no objects to get", "add objects.count")
	}
}

func (c *checker) cache(at string, ca *Cache, s *Scenario) {
	c.members(at+".count", ca.Count, maxWorkers)
	c.count(at+".references", ca.References, MaxWatchers)
	if ca.References == 0 {
		c.notZero(at+".references", "write at least 1, or leave it out for as many as objects")
	}
	c.enough(at+".references", cmp.Or(ca.References, s.Objects.Count), ca.Count)
	c.rate(at+".rate", ca.Rate, true)
	c.share(at+".churn", ca.Churn)
	c.duration(at+".idle", ca.Idle)
	if s.Objects.Count == 0 {
		c.wrong(at, "there are no objects to refer to", "add objects.count")
	}
}

// enough checks that each of that many caches has a reference: one without does not read.
func (c *checker) enough(field string, references, caches int) {
	if references > 0 && references < caches {
		c.wrong(field, fmt.Sprintf("are %d for %d caches", references, caches), "write at least one for each")
	}
}

func (c *checker) informer(at string, in *Informer, s *Scenario) {
	c.members(at+".count", in.Count, maxWorkers)
	c.members(at+".handlers", in.Handlers, maxWorkers)
	if all := in.Count * in.Handlers; all > MaxWatchers && max(in.Count, in.Handlers) <= maxWorkers {
		c.wrong(at+".handlers", fmt.Sprintf("makes %d handlers of the group", all), fmt.Sprintf("the most is %d", MaxWatchers))
	}
	c.selection(at, Selection{Prefix: in.Prefix}, s)
	oneOf(c, at+".policy", in.Policy, MergeChanges, Resnapshot, Block)
	c.count(at+".buffer", in.Buffer, maxBuffer)
	c.consume(at, in.Consume)
}

// selection checks that the selectors, filled in for the first member of the
// group, parse and name labels and fields that objects have.
func (c *checker) selection(at string, sel Selection, s *Scenario) {
	if c.template(at+".labels", sel.Labels, s.Objects) {
		parsed, err := labels.Parse(s.Objects.fill(sel.Labels, 0))
		if err != nil {
			c.wrong(at+".labels", fmt.Sprintf("%s does not parse: %s", quoted(sel.Labels), shortened(err.Error(), maxForeign)), `write it like "app={app},tier!=cache"`)
		} else {
			c.labelNames(at+".labels", parsed, s)
		}
	}
	if c.template(at+".fields", sel.Fields, s.Objects) {
		parsed, err := fields.ParseSelector(s.Objects.fill(sel.Fields, 0))
		if err != nil {
			c.wrong(at+".fields", fmt.Sprintf("%s does not parse: %s", quoted(sel.Fields), shortened(err.Error(), maxForeign)), `write it like "node={node},phase!=phase-0"`)
		} else {
			c.fieldNames(at+".fields", parsed, s)
		}
	}
	c.path(at+".prefix", sel.Prefix, s, Objects.isPath)
	c.path(at+".key", sel.Key, s, Objects.isKey)
}

// path checks that a path, filled in for the first member of the group, is valid, and that it can
// select something. Objects of a trace have other keys.
func (c *checker) path(field, path string, s *Scenario, selects func(Objects, string) bool) {
	if path == "" || !c.template(field, path, s.Objects) {
		return
	}
	filled := s.Objects.fill(path, 0)
	if err := store.ValidateKey(filled); err != nil {
		c.wrong(field, fmt.Sprintf("%s is not a valid key: %s", quoted(path), shortened(err.Error(), maxForeign)), `write it like "{namespace}" or "{key}"`)
	} else if !s.replays() && !selects(s.Objects, filled) {
		fix := fmt.Sprintf("keys are %s, %s and so on, and {namespace} stands for each namespace in turn", s.Objects.Key(0), s.Objects.Key(1))
		c.wrong(field, fmt.Sprintf("no object is selected: none is at %s", quoted(filled)), fix)
	}
}

func (c *checker) labelNames(at string, parsed labels.Selector, s *Scenario) {
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		if s.Objects.Labels[r.Key()] == 0 {
			c.wrong(at, "unknown label "+quoted(r.Key()), "objects have the labels "+listedKeys(s.Objects.Labels))
		} else if op := r.Operator(); op == selection.Equals || op == selection.DoubleEquals || op == selection.In {
			c.oneExists(at, r.Key(), r.Values().List(), s.Objects.Labels[r.Key()], s)
		}
	}
}

func (c *checker) fieldNames(at string, parsed fields.Selector, s *Scenario) {
	for _, r := range parsed.Requirements() {
		if !s.hasField(r.Field) {
			c.wrong(at, "unknown field "+quoted(r.Field), "objects have the fields "+s.fieldNames())
		} else if r.Operator != selection.NotEquals {
			c.oneExists(at, r.Field, []string{r.Value}, s.Objects.Fields[r.Field], s)
		}
	}
}

// oneExists checks that objects can have one of the values of a field or label, which has n
// different ones. Objects of a trace have other values.
func (c *checker) oneExists(at, name string, values []string, n int, s *Scenario) {
	exists := func(value string) bool {
		i, err := strconv.Atoi(strings.TrimPrefix(value, name+"-"))
		return err == nil && i >= 0 && i < n && value == Value(name, i)
	}
	if s.replays() || slices.ContainsFunc(values, exists) {
		return
	}
	fix := fmt.Sprintf("it has %s to %s, and {%s} stands for each in turn", Value(name, 0), Value(name, n-1), name)
	c.wrong(at, fmt.Sprintf("no object is selected: %s has no value %s", name, quoted(strings.Join(values, ", "))), fix)
}

// hasField reports whether some objects have the field.
func (s *Scenario) hasField(name string) bool {
	return s.Objects.Fields[name] > 0 || s.replays() && slices.Contains(TraceFields, name)
}

func (s *Scenario) fieldNames() string {
	names := slices.Sorted(maps.Keys(s.Objects.Fields))
	if s.replays() {
		names = slices.Concat(TraceFields, names)
	}
	return listed(names)
}

// replays reports whether a writer replays a trace.
func (s *Scenario) replays() bool {
	return slices.ContainsFunc(s.Writers, func(w Writer) bool { return w.Trace != "" })
}
