package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Writer is a group that writes at a rate, whether the engine keeps up or not:
// each write has an intended time, and latency counts from there.
type Writer struct {
	// Name is what reports call the group. Default: writers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many write at the same time, each its own share of the
	// objects. Default 1.
	Count int `yaml:"count,omitempty"`
	// Rate is the writes per second of the whole group. Required without Trace.
	Rate float64 `yaml:"rate,omitempty"`
	// Shape is how they are spread. Default steady.
	Shape Shape `yaml:"shape,omitempty"`
	// Burst is how many writes of the whole group come at once, for shape bursts:
	// at least one of each writer. Default: a tenth of a second's.
	Burst int `yaml:"burst,omitempty"`
	// Mix weighs the kinds of writes. Default: updates only.
	Mix Mix `yaml:"mix,omitempty"`
	// Hot is the exponent, above 1, of the Zipf distribution by which the
	// objects to write are drawn: 1.1 is mild, 2 leaves most writes to a few
	// keys. Zero means uniform.
	Hot float64 `yaml:"hot,omitempty"`
	// Move is the share of updates, from 0 to 1, that give an object other
	// values of its fields and labels, so that it leaves one selector and enters
	// another.
	Move float64 `yaml:"move,omitempty"`
	// Start is when the group begins, Stop when it ends. Default: with the run.
	Start time.Duration `yaml:"start,omitempty"`
	Stop  time.Duration `yaml:"stop,omitempty"`
	// Trace replays a recorded history within the group's time instead: a file
	// (relative to the scenario's) or the name of a shipped one, git-history. Its
	// objects have the fields dir and ext. It stands alone: no Rate, Shape, Mix,
	// Hot, Move.
	Trace string `yaml:"trace,omitempty"`
}

// Shape is how writes are spread over time.
type Shape string

// The shapes.
const (
	// Steady writes at equal distances.
	Steady Shape = "steady"
	// Poisson writes as independent clients would: with exponential distances.
	Poisson Shape = "poisson"
	// Bursts writes many at once, and then nothing until the next burst is due.
	Bursts Shape = "bursts"
)

// Mix weighs kinds of writes against each other. Only ratios count. Where there
// is no object to update or delete, one is created instead.
type Mix struct {
	Create float64 `yaml:"create,omitempty"`
	Update float64 `yaml:"update,omitempty"`
	Delete float64 `yaml:"delete,omitempty"`
	// Emit sends events that are not state.
	Emit float64 `yaml:"emit,omitempty"`
}

// Total returns the sum of the weights.
func (m Mix) Total() float64 { return m.Create + m.Update + m.Delete + m.Emit }

// Watcher is a group of watchers that are alike.
//
// Labels, Fields, Prefix and Key are templates, filled in for each watcher:
//
//	{i}          its number in the group, from 0
//	{node}       a value of the field or label node: watchers take them in turn
//	{namespace}  a namespace, in turn
//	{key}        the key of an object that there is at the start, in turn
type Watcher struct {
	// Name is what reports call the group. Default: watchers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many there are. Default 1.
	Count int `yaml:"count,omitempty"`
	// Labels and Fields are selectors; Prefix watches the keys under a path, Key
	// one object.
	Labels string `yaml:"labels,omitempty"`
	Fields string `yaml:"fields,omitempty"`
	Prefix string `yaml:"prefix,omitempty"`
	Key    string `yaml:"key,omitempty"`
	// Initial starts each with the present state.
	Initial bool `yaml:"initial,omitempty"`
	// Start is when the first of them opens its watch, Spread over how long the
	// others follow. Default: before the first write.
	Start  time.Duration `yaml:"start,omitempty"`
	Spread time.Duration `yaml:"spread,omitempty"`
	// Policy is what happens to one that falls behind. Default park.
	Policy Policy `yaml:"policy,omitempty"`
	// Buffer is how many events it may lag before it is stalled; zero means the
	// engine's default.
	Buffer int `yaml:"buffer,omitempty"`
	// Consumer is how it takes its events. Default batches.
	Consumer Consumer `yaml:"consumer,omitempty"`
	// Consume slows it down.
	Consume Consume `yaml:"consume,omitempty"`
	// Reconnect makes it break off and resume.
	Reconnect Reconnect `yaml:"reconnect,omitempty"`
}

// Policy is what happens to a watcher that stays too far behind.
type Policy string

// The policies; see package engine.
const (
	Park      Policy = "park"
	Terminate Policy = "terminate"
	Conflate  Policy = "conflate"
)

// Consumer is how a watcher takes its events.
type Consumer string

// The consumers.
const (
	// Batches takes as many events as there are.
	Batches Consumer = "batches"
	// Handler has a function called with each.
	Handler Consumer = "handler"
	// Channel receives each from a channel.
	Channel Consumer = "channel"
)

// Consume slows a consumer down. The zero value is full speed.
type Consume struct {
	// Rate is the most events per second that it takes.
	Rate float64 `yaml:"rate,omitempty"`
	// Every Every it takes nothing, for Pause.
	Every time.Duration `yaml:"every,omitempty"`
	Pause time.Duration `yaml:"pause,omitempty"`
}

// Slow reports whether the consumer is not at full speed. Its latency is its own
// doing, so it does not count.
func (c Consume) Slow() bool { return c != Consume{} }

// Reconnect makes a watcher break off about every Every (each at times of its
// own), stay away for Away, and resume where it was. The zero value never does.
type Reconnect struct {
	Every time.Duration `yaml:"every,omitempty"`
	Away  time.Duration `yaml:"away,omitempty"`
}

// Reader is a group that reads all the time.
type Reader struct {
	// Name is what reports call the group. Default: readers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many read at the same time. Default 1.
	Count int `yaml:"count,omitempty"`
	// Rate is the reads per second of the whole group. Required.
	Rate float64 `yaml:"rate"`
	// Op is what they do. Default list.
	Op ReadOp `yaml:"op,omitempty"`
	// Mode says how fresh a read must be. Default latest.
	Mode ReadMode `yaml:"mode,omitempty"`
	// Labels, Fields and Prefix narrow a list; they are templates, see
	// [Watcher].
	Labels string `yaml:"labels,omitempty"`
	Fields string `yaml:"fields,omitempty"`
	Prefix string `yaml:"prefix,omitempty"`
	// Limit is the page size of a list; zero means all at once.
	Limit int `yaml:"limit,omitempty"`
}

// ReadOp is what a reader does.
type ReadOp string

// The operations of readers.
const (
	List ReadOp = "list"
	// Get reads one object, drawn at random.
	Get ReadOp = "get"
)

// ReadMode says how fresh a read must be.
type ReadMode string

// The modes; see the functions of package engine with like names.
const (
	// Latest is linearizable.
	Latest ReadMode = "latest"
	// Cached is what the cache has.
	Cached ReadMode = "cached"
	// NotOlder is not older than the newest write known when the read begins.
	NotOlder ReadMode = "not-older"
	// Exact is the state at that revision.
	Exact ReadMode = "exact"
)

// Cache is a group of object caches: each holds references to single objects and
// follows those, as a kubelet does the configmaps of its pods.
type Cache struct {
	// Name is what reports call the group. Default: caches-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many caches there are. Default 1.
	Count int `yaml:"count,omitempty"`
	// References is how many references the whole group holds, to objects drawn
	// at random of those that there are at the start, so that several may be to
	// one. Default: one for each object.
	References int `yaml:"references,omitempty"`
	// Rate is how many references of the whole group are read per second.
	// Required.
	Rate float64 `yaml:"rate"`
	// Churn is the share of the reads, from 0 to 1, before which the reference is
	// released and another acquired.
	Churn float64 `yaml:"churn,omitempty"`
	// Idle is how long an object is followed without being read; zero means the
	// cache's default.
	Idle time.Duration `yaml:"idle,omitempty"`
}

// Informer is a group of informers: each mirrors the engine, and tells handlers
// what changes.
type Informer struct {
	// Name is what reports call the group. Default: informers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many informers there are, Handlers how many handlers each has.
	// Default 1.
	Count    int `yaml:"count,omitempty"`
	Handlers int `yaml:"handlers,omitempty"`
	// Prefix mirrors only the keys under a path. It is a template, see [Watcher].
	Prefix string `yaml:"prefix,omitempty"`
	// Policy is what happens to a handler that falls behind. Default conflate.
	Policy HandlerPolicy `yaml:"policy,omitempty"`
	// Buffer is how many notifications may be ahead of a handler; zero means the
	// informer's default.
	Buffer int `yaml:"buffer,omitempty"`
	// Consume slows the handlers down.
	Consume Consume `yaml:"consume,omitempty"`
}

// HandlerPolicy is what happens to an informer's handler that falls behind.
type HandlerPolicy string

// The policies; see package informer.
const (
	MergeChanges HandlerPolicy = "conflate"
	Resnapshot   HandlerPolicy = "resnapshot"
	Block        HandlerPolicy = "block"
)

// placeholder is a name in braces.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Key returns the key of the nth object.
func (o Objects) Key(n int) string {
	return fmt.Sprintf("ns-%d/obj-%d", n%max(1, o.Namespaces), n)
}

// Value returns the nth of a field's or label's values.
func Value(name string, n int) string { return name + "-" + strconv.Itoa(n) }

// placeholders returns what templates may have, sorted.
func (o Objects) placeholders() []string {
	names := []string{"i", "namespace"}
	if o.Count > 0 {
		names = append(names, "key")
	}
	names = slices.AppendSeq(slices.AppendSeq(names, maps.Keys(o.Fields)), maps.Keys(o.Labels))
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		names[i] = "{" + name + "}"
	}
	return names
}

// fill returns the template as the ith of its users has it. Unknown names stay.
func (o Objects) fill(template string, i int) string {
	return placeholder.ReplaceAllStringFunc(template, func(match string) string {
		if value, known := o.value(match[1:len(match)-1], i); known {
			return value
		}
		return match
	})
}

func (o Objects) value(name string, i int) (value string, known bool) {
	switch {
	case name == "i":
		return strconv.Itoa(i), true
	case name == "namespace":
		return "ns-" + strconv.Itoa(i%max(1, o.Namespaces)), true
	case name == "key" && o.Count > 0:
		return o.Key(i % o.Count), true
	case o.Fields[name] > 0:
		return Value(name, i%o.Fields[name]), true
	case o.Labels[name] > 0:
		return Value(name, i%o.Labels[name]), true
	}
	return "", false
}

// Selection is what one watcher or reader asks for.
type Selection struct {
	Labels, Fields, Prefix, Key string
}

// Select returns what the ith watcher of the group asks for.
func (p *Plan) Select(w Watcher, i int) Selection {
	o := p.Objects
	return Selection{Labels: o.fill(w.Labels, i), Fields: o.fill(w.Fields, i), Prefix: o.fill(w.Prefix, i), Key: o.fill(w.Key, i)}
}

// SelectRead returns what the ith list of the group asks for.
func (p *Plan) SelectRead(r Reader, i int) Selection {
	o := p.Objects
	return Selection{Labels: o.fill(r.Labels, i), Fields: o.fill(r.Fields, i), Prefix: o.fill(r.Prefix, i)}
}

// SelectInformer returns what the ith informer of the group mirrors.
func (p *Plan) SelectInformer(in Informer, i int) Selection {
	return Selection{Prefix: p.Objects.fill(in.Prefix, i)}
}

// template demands that the placeholders of a template are known.
func (c *checker) template(field, template string, o Objects) (ok bool) {
	ok = true
	for _, match := range placeholder.FindAllString(template, -1) {
		if _, known := o.value(match[1:len(match)-1], 0); !known {
			ok = false
			c.wrong(field, shortened(match, maxQuoted)+" stands for nothing", "there are "+listed(o.placeholders()))
		}
	}
	return ok
}
