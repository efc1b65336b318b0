package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"
)

// Options configure how a scenario is resolved. The zero value changes nothing.
type Options struct {
	// Small applies the scenario's Small, for a run of ten seconds. One without stays as it is.
	Small bool
	// Duration, if not zero, is the length of the load; the times of starts, stops
	// and faults change in proportion. It is at most [MaxDuration].
	Duration time.Duration
	// Seed, if not zero, replaces the scenario's seed.
	Seed uint64
}

// Default values; see [Scenario].
const (
	DefaultDuration = 10 * time.Second
	DefaultSettle   = 10 * time.Second
	defaultSize     = 100
)

// Resolve validates the scenario and returns the plan, in which all defaults are
// filled in. It does not change the scenario. Equal scenarios and options give equal
// plans. Errors: [Errors].
func (s *Scenario) Resolve(o Options) (*Plan, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if o.Duration < 0 || o.Duration > MaxDuration {
		return nil, Errors{{Field: "Options.Duration", Problem: fmt.Sprintf("is %v", o.Duration), Fix: fmt.Sprintf("write one from 0 to %v", MaxDuration)}}
	}
	r := s.withNames()
	r.Name = cmp.Or(r.Name, "scenario")
	r.Seed = cmp.Or(o.Seed, r.Seed, 1)
	r.Duration = cmp.Or(r.Duration, DefaultDuration)
	r.Settle = cmp.Or(r.Settle, DefaultSettle)
	if o.Small {
		r.shrink()
	}
	if o.Duration > 0 {
		r.scale(o.Duration)
	}
	r.Small = Small{}
	r.fillObjects()
	r.fillGroups()
	r.fillFaults()
	if len(r.Assert) == 0 {
		r.Assert = r.assertions()
	}
	return newPlan(*r, o.Small)
}

// HasSmall reports whether the scenario has values for a small run.
func (s *Scenario) HasSmall() bool { return !reflect.ValueOf(s.Small).IsZero() }

// assertions returns the assertions of a scenario without any: no event is lost, all that the
// scenario does not make slow read everything, and what no fault makes fail succeeds. Otherwise
// a watcher that is never woken would pass, and writers that write nothing.
func (s *Scenario) assertions() (all []Assertion) {
	var unread, stale []Assertion
	for _, w := range s.Watchers {
		if !w.Consume.Slow() {
			unread = append(unread, Assertion(w.Name+".unread = 0"))
		}
	}
	for _, c := range s.Caches {
		stale = append(stale, Assertion(c.Name+".stale = 0"))
	}
	for _, in := range s.Informers {
		if !in.Consume.Slow() {
			stale = append(stale, Assertion(in.Name+".stale = 0"))
		}
	}
	if len(s.Watchers) > 0 {
		all = append(all, "lost = 0")
	}
	all = append(all, together(unread, len(s.Watchers), "unread = 0")...)
	all = append(all, together(stale, len(s.Caches)+len(s.Informers), "stale = 0")...)
	if len(s.Writers) > 0 && !slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind.Lasts() }) {
		all = append(all, "write-errors = 0")
	}
	if len(s.Readers)+len(s.Caches) > 0 && len(s.Faults) == 0 {
		all = append(all, "read-errors = 0")
	}
	return all
}

// together returns one assertion in place of those of each group, unless they are of fewer
// than all groups.
func together(each []Assertion, groups int, one Assertion) []Assertion {
	if groups > 0 && len(each) == groups {
		return []Assertion{one}
	}
	return each
}

// withNames returns a copy in which all groups have names, as deep as resolving changes it. Empty
// lists and maps become nil, so that they have the same hash as those that are left out.
func (s *Scenario) withNames() *Scenario {
	r := *s
	r.Objects.Fields, r.Objects.Labels = maps.Clone(nonEmpty(s.Objects.Fields)), maps.Clone(nonEmpty(s.Objects.Labels))
	r.Writers, r.Watchers, r.Readers = cloned(s.Writers), cloned(s.Watchers), cloned(s.Readers)
	r.Informers, r.Caches, r.Faults = cloned(s.Informers), cloned(s.Caches), cloned(s.Faults)
	for _, g := range r.groups() {
		*g.name = cmp.Or(*g.name, fmt.Sprintf("%s-%d", g.list, g.index+1))
	}
	return &r
}

// cloned returns a copy of the list, nil if it is empty.
func cloned[E any](list []E) []E { return append([]E(nil), list...) }

// nonEmpty returns the map, nil if it is empty.
func nonEmpty[M ~map[K]V, K comparable, V any](m M) M {
	if len(m) == 0 {
		return nil
	}
	return m
}

// shrink applies the scenario's Small.
func (s *Scenario) shrink() {
	if s.Small.Duration > 0 {
		s.scale(s.Small.Duration)
	}
	s.Settle = cmp.Or(s.Small.Settle, s.Settle)
	s.Objects.Count = cmp.Or(s.Small.Objects, s.Objects.Count)
	for name, n := range s.Small.Fields {
		s.Objects.Fields[name] = cmp.Or(n, s.Objects.Fields[name])
	}
	for i := range s.Watchers {
		w := &s.Watchers[i]
		w.Count = cmp.Or(s.Small.Watchers[w.Name], w.Count)
	}
	for i := range s.Writers {
		w := &s.Writers[i]
		w.Rate = cmp.Or(s.Small.Rates[w.Name], w.Rate)
	}
	for i := range s.Readers {
		r := &s.Readers[i]
		r.Rate = cmp.Or(s.Small.Rates[r.Name], r.Rate)
	}
	for i := range s.Caches {
		c := &s.Caches[i]
		c.Rate = cmp.Or(s.Small.Rates[c.Name], c.Rate)
		c.References = cmp.Or(s.Small.References[c.Name], c.References)
	}
}

// scale sets the length of the load to d, and changes all times in proportion, to whole
// microseconds. Times keep their order, and those before the end of the load stay before it. No
// time becomes longer than it may be, or zero if that would mean something else, such as the
// end.
func (s *Scenario) scale(d time.Duration) {
	factor := float64(d) / float64(s.Duration)
	scale := func(t *time.Duration, least, most time.Duration) {
		if *t > 0 {
			scaled := time.Duration(min(float64(*t)*factor, float64(MaxDuration))).Round(time.Microsecond)
			*t = min(max(scaled, least), most)
		}
	}
	const tick = time.Microsecond
	last := max(0, d-tick)
	for i := range s.Writers {
		w := &s.Writers[i]
		scale(&w.Start, tick, last)
		scale(&w.Stop, w.Start+tick, MaxDuration)
	}
	for i := range s.Watchers {
		w := &s.Watchers[i]
		scale(&w.Start, tick, last)
		scale(&w.Spread, tick, last-w.Start)
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		scale(&f.At, tick, last)
		scale(&f.Every, max(tick, d/maxOccurrences), MaxDuration)
		scale(&f.For, tick, MaxDuration)
	}
	s.Duration = d
}

func (s *Scenario) fillObjects() {
	o := &s.Objects
	o.Namespaces = max(1, o.Namespaces)
	if o.Size == (Size{}) {
		o.Size.Min = defaultSize
	}
	o.Size.Max = cmp.Or(o.Size.Max, max(o.Size.Min, defaultSize))
	if o.Index == nil || o.Fields == nil {
		o.Index = slices.Sorted(maps.Keys(o.Fields))
	}
}

func (s *Scenario) fillGroups() {
	for i := range s.Writers {
		s.Writers[i].fill(s.Duration)
	}
	for i := range s.Watchers {
		s.Watchers[i].fill()
	}
	for i := range s.Readers {
		s.Readers[i].fill()
	}
	for i := range s.Caches {
		s.Caches[i].fill(s.Objects.Count)
	}
	for i := range s.Informers {
		s.Informers[i].fill()
	}
}

func (w *Writer) fill(end time.Duration) {
	w.Count = max(1, w.Count)
	w.Stop = min(cmp.Or(w.Stop, end), end)
	if w.Trace != "" {
		return
	}
	w.Shape = cmp.Or(w.Shape, Steady)
	if w.Shape == Bursts {
		w.Burst = max(w.Count, cmp.Or(w.Burst, int(w.Rate/10)))
	}
	if w.Mix.Total() == 0 {
		w.Mix.Update = 1
	}
}

func (w *Watcher) fill() {
	w.Count = max(1, w.Count)
	w.Policy, w.Consumer = cmp.Or(w.Policy, Park), cmp.Or(w.Consumer, Batches)
}

func (r *Reader) fill() {
	r.Count = max(1, r.Count)
	r.Op, r.Mode = cmp.Or(r.Op, List), cmp.Or(r.Mode, Latest)
}

func (c *Cache) fill(objects int) {
	c.Count = max(1, c.Count)
	c.References = cmp.Or(c.References, objects)
}

func (in *Informer) fill() {
	in.Count, in.Handlers = max(1, in.Count), max(1, in.Handlers)
	in.Policy = cmp.Or(in.Policy, MergeChanges)
}

func (s *Scenario) fillFaults() {
	seeds := rand.New(rand.NewPCG(s.Seed, 1))
	for i := range s.Faults {
		f := &s.Faults[i]
		f.Name = cmp.Or(f.Name, string(f.Kind))
		f.When = f.When.seeded(seeds)
		switch {
		case f.Kind.Lasts() && f.For == 0 && f.Every > 0:
			f.For = f.Every / 2
		case f.Kind.Lasts() && f.For == 0:
			f.For = max(0, s.Duration-f.At)
		case f.Kind == FaultPanic || f.Kind == FaultReconnect:
			f.Share = cmp.Or(f.Share, 1)
		}
	}
}

// group is a group of a scenario: the list that it is in, its index there, and its name.
type group struct {
	list  string
	index int
	name  *string
}

// groups returns all groups, in the order of the fields of a scenario.
func (s *Scenario) groups() (all []group) {
	for i := range s.Writers {
		all = append(all, group{"writers", i, &s.Writers[i].Name})
	}
	for i := range s.Watchers {
		all = append(all, group{"watchers", i, &s.Watchers[i].Name})
	}
	for i := range s.Readers {
		all = append(all, group{"readers", i, &s.Readers[i].Name})
	}
	for i := range s.Caches {
		all = append(all, group{"caches", i, &s.Caches[i].Name})
	}
	for i := range s.Informers {
		all = append(all, group{"informers", i, &s.Informers[i].Name})
	}
	return all
}
