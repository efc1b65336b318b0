package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// The maximum values of a scenario, which runs in one process.
const (
	MaxObjects   = 10_000_000
	MaxWatchers  = 1_000_000
	MaxRate      = 10_000_000 // writes or reads per second
	MaxDuration  = 24 * time.Hour
	maxValues    = 10_000_000
	maxWorkers   = 10_000  // of one group of writers or readers
	maxBuffer    = 1 << 30 // events or notifications; fits an int of 32 bits
	maxSize      = 16 << 20
	maxClockJump = 10 * 365 * 24 * time.Hour

	defaultBackoff = 800 * time.Millisecond // the engine's

	maxPayload int64 = 64 << 30 // bytes of all objects together
)

// checker checks a scenario and collects the errors.
type checker struct {
	errs Errors
	// found counts all errors, including those that are not listed.
	found int
	// written are the fields that the scenario's file has; none for a scenario in Go.
	written places
}

// wrong adds an error of a field.
func (c *checker) wrong(field, problem, fix string) {
	c.found++
	c.errs.add(&Error{Field: field, Problem: problem, Fix: fix})
}

// number is the constraint for fields that count or measure.
type number interface{ ~int | ~int64 | ~float64 }

// notNegative checks that a value is zero or more.
func notNegative[N number](c *checker, field string, n N, fix string) {
	if n < 0 {
		c.wrong(field, fmt.Sprintf("is negative: %v", n), fix)
	}
}

// oneOf checks that a value is one of those allowed, or left out.
func oneOf[S ~string](c *checker, field string, s S, allowed ...S) {
	if s == "" {
		return
	}
	if slices.Contains(allowed, s) {
		return
	}
	c.wrong(field, quoted(string(s))+" is not known", writeOneOf(allowed))
}

func writeOneOf[S ~string](allowed []S) string {
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return "write one of " + strings.Join(names, ", ")
}

// Validate checks the scenario. It returns nil or [Errors].
func (s *Scenario) Validate() error {
	if errs := s.validate(nil); errs != nil {
		return errs
	}
	return nil
}

// validate checks a scenario whose file has the fields at written. It returns nil if nothing is wrong.
func (s *Scenario) validate(written places) Errors {
	s, c := s.withNames(), &checker{written: written}
	c.length("duration", s.Duration, DefaultDuration)
	c.length("settle", s.Settle, DefaultSettle)
	if s.Seed == 0 {
		c.notZero("seed", "write one of at least 1, or leave it out for 1")
	}
	c.engine(s.Engine)
	c.objects(s.Objects)
	for i := range s.Writers {
		c.writer(fmt.Sprintf("writers[%d]", i), &s.Writers[i], s)
	}
	for i := range s.Watchers {
		c.watcher(fmt.Sprintf("watchers[%d]", i), &s.Watchers[i], s)
	}
	for i := range s.Readers {
		c.reader(fmt.Sprintf("readers[%d]", i), &s.Readers[i], s)
	}
	for i := range s.Caches {
		c.cache(fmt.Sprintf("caches[%d]", i), &s.Caches[i], s)
	}
	for i := range s.Informers {
		c.informer(fmt.Sprintf("informers[%d]", i), &s.Informers[i], s)
	}
	for i := range s.Faults {
		c.fault(fmt.Sprintf("faults[%d]", i), &s.Faults[i], s)
	}
	for i, a := range s.Assert {
		c.assertion(fmt.Sprintf("assert[%d]", i), a, s)
	}
	c.names(s)
	c.small(s)
	if len(s.Writers)+len(s.Watchers)+len(s.Readers)+len(s.Caches)+len(s.Informers) == 0 {
		c.wrong("", "nothing would happen", "add writers, watchers, readers, caches or informers")
	}
	return c.errs
}

// duration checks that a duration is between zero and [MaxDuration].
func (c *checker) duration(field string, d time.Duration) {
	notNegative(c, field, d, "write a duration such as 500ms or 30s")
	if d > MaxDuration {
		c.wrong(field, fmt.Sprintf("is %v", d), fmt.Sprintf("the longest is %v", MaxDuration))
	}
}

// notZero adds an error of a field that is zero, which means the default, if the file has it.
func (c *checker) notZero(field, fix string) {
	if c.written.has(field) {
		c.wrong(field, "is 0", fix)
	}
}

// length checks a duration of which zero means the default, so a file must not have zero.
func (c *checker) length(field string, d, otherwise time.Duration) {
	c.duration(field, d)
	if d == 0 {
		c.notZero(field, fmt.Sprintf("write a duration such as 500ms or 30s, or leave it out for %v", otherwise))
	}
}

// beforeEnd checks that a time is before the end of the load, since nothing would happen
// at a later one.
func (c *checker) beforeEnd(field string, at time.Duration, s *Scenario) {
	if over := cmp.Or(s.Duration, DefaultDuration); at > 0 && at >= over {
		c.wrong(field, fmt.Sprintf("comes at %v, but the load is over after %v", at, over), "make it earlier, or duration longer")
	}
}

// count checks that a number is between zero and a limit.
func (c *checker) count(field string, n, limit int) {
	notNegative(c, field, n, "write a number, or leave it out")
	if n > limit {
		c.wrong(field, fmt.Sprintf("is %d", n), fmt.Sprintf("the most is %d", limit))
	}
}

// members checks how many members a group has. Zero means one, so a file must not have it.
func (c *checker) members(field string, n, limit int) {
	c.count(field, n, limit)
	if n == 0 {
		c.notZero(field, "write at least 1, or leave the group out")
	}
}

// rate checks that a rate is above zero, or left out unless it is required.
func (c *checker) rate(field string, rate float64, required bool) {
	switch {
	case rate == 0 && required && c.written.has(field):
		c.wrong(field, "is 0", "write how many per second, such as 500")
	case rate == 0 && required:
		c.wrong(field, "is missing", "write how many per second, such as 500")
	case math.IsNaN(rate):
		c.wrong(field, "is NaN", "write how many per second, such as 500")
	case rate < 0:
		c.wrong(field, fmt.Sprintf("is negative: %v", rate), "write how many per second, such as 500")
	case rate > MaxRate:
		c.wrong(field, fmt.Sprintf("is %v", rate), fmt.Sprintf("the most is %d per second", MaxRate))
	}
}

// share checks that a share is between 0 and 1.
func (c *checker) share(field string, share float64) {
	if !(share >= 0 && share <= 1) {
		c.wrong(field, fmt.Sprintf("is %v", share), "write a share from 0 to 1")
	}
}

func (c *checker) engine(e Engine) {
	c.count("engine.window", e.Window, maxBuffer)
	c.duration("engine.window-age", e.WindowAge)
	c.duration("engine.bookmarks", e.Bookmarks)
	c.duration("engine.backoff", e.Backoff)
	c.duration("engine.backoff-max", e.BackoffMax)
	switch {
	case e.BackoffMax <= 0:
	case e.Backoff == 0 && e.BackoffMax < defaultBackoff:
		c.wrong("engine.backoff-max", fmt.Sprintf("is less than backoff, which is %v if it is left out", defaultBackoff), "make it at least "+defaultBackoff.String())
	case e.BackoffMax < e.Backoff:
		c.wrong("engine.backoff-max", "is less than backoff", "make it at least "+e.Backoff.String())
	}
	c.count("engine.workers", e.Workers, 1024)
}

func (c *checker) objects(o Objects) {
	c.count("objects.count", o.Count, MaxObjects)
	c.count("objects.namespaces", o.Namespaces, maxValues)
	c.count("objects.size.min", o.Size.Min, maxSize)
	c.count("objects.size.max", o.Size.Max, maxSize)
	if o.Size.Max > 0 && o.Size.Max < o.Size.Min {
		c.wrong("objects.size.max", "is less than min", fmt.Sprintf("make it at least %d", o.Size.Min))
	}
	c.payload("objects.size", o.Count, o.Size)
	c.values("objects.fields", o.Fields)
	c.values("objects.labels", o.Labels)
	for i, name := range o.Index {
		if o.Fields[name] == 0 {
			c.wrong(fmt.Sprintf("objects.index[%d]", i), "there is no field "+quoted(name), "objects have the fields "+listedKeys(o.Fields))
		}
	}
}

// payload checks that count objects of that size fit in memory.
func (c *checker) payload(field string, count int, size Size) {
	most := max(size.Min, size.Max, defaultSize)
	if count > 0 && count <= MaxObjects && int64(count) > maxPayload/int64(most) {
		c.wrong(field, fmt.Sprintf("%d objects of %d bytes do not fit in memory", count, most), fmt.Sprintf("the most is %d GiB: make them fewer, or smaller", maxPayload>>30))
	}
}

// values checks the names of fields or labels, and their numbers of values.
func (c *checker) values(field string, values map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := field + "." + name
		if !plainName.MatchString(name) {
			c.wrong(field, quoted(name)+" is not a valid name", nameFix)
			continue
		}
		if values[name] == 0 {
			c.wrong(at, "is 0", "write how many different values there are, such as 50")
		}
		c.count(at, values[name], maxValues)
	}
}

// names checks that the names of groups are valid and unique.
func (c *checker) names(s *Scenario) {
	seen := map[string]bool{}
	for _, g := range s.groups() {
		field, name := fmt.Sprintf("%s[%d].name", g.list, g.index), *g.name
		switch {
		case !plainName.MatchString(name):
			c.wrong(field, quoted(name)+" is not a valid name", nameFix)
		case seen[name]:
			c.wrong(field, quoted(name)+" is the name of another group", "give each group a name of its own")
		}
		seen[name] = true
	}
}

// small checks that the groups and fields that Small names exist.
func (c *checker) small(s *Scenario) {
	c.duration("small.duration", s.Small.Duration)
	c.duration("small.settle", s.Small.Settle)
	c.count("small.objects", s.Small.Objects, MaxObjects)
	c.payload("small.objects", s.Small.Objects, s.Objects.Size)
	rates, watchers, caches := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, g := range s.groups() {
		rates[*g.name] = g.list != "watchers" && g.list != "informers"
		watchers[*g.name] = g.list == "watchers"
		caches[*g.name] = g.list == "caches"
	}
	for _, w := range s.Writers {
		rates[w.Name] = w.Trace == ""
	}
	for _, name := range slices.Sorted(maps.Keys(s.Small.References)) {
		c.count("small.references."+name, s.Small.References[name], MaxWatchers)
		if !caches[name] {
			c.wrong("small.references."+name, "is not a group of caches", "there are "+listedTrue(caches))
		}
	}
	c.smallCaches(s)
	for _, name := range slices.Sorted(maps.Keys(s.Small.Watchers)) {
		c.count("small.watchers."+name, s.Small.Watchers[name], MaxWatchers)
		if !watchers[name] {
			c.wrong("small.watchers."+name, "is not a group of watchers", "there are "+listedTrue(watchers))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Small.Rates)) {
		c.rate("small.rates."+name, s.Small.Rates[name], true)
		if !rates[name] {
			c.wrong("small.rates."+name, "is not a group with a rate", "there are "+listedTrue(rates))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Small.Fields)) {
		c.count("small.fields."+name, s.Small.Fields[name], maxValues)
		if s.Objects.Fields[name] == 0 {
			c.wrong("small.fields."+name, "is not a field", "objects have the fields "+listedKeys(s.Objects.Fields))
		}
	}
}

// listedTrue lists the names that are true, sorted.
func listedTrue(are map[string]bool) string {
	return listed(slices.DeleteFunc(slices.Sorted(maps.Keys(are)), func(name string) bool { return !are[name] }))
}

// smallCaches checks the numbers of references that Small changes.
func (c *checker) smallCaches(s *Scenario) {
	for _, ca := range s.Caches {
		if own := s.Small.References[ca.Name]; own != 0 || ca.References == 0 && s.Small.Objects != 0 {
			n := cmp.Or(own, ca.References, s.Small.Objects, s.Objects.Count)
			c.enough("small.references."+ca.Name, n, ca.Count)
		}
	}
}
