package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Writer is a group of writers with one rate, which does not depend on whether the
// engine keeps up: each write has an intended time, and its latency counts from
// that time.
type Writer struct {
	// Name is what reports call the group. Default: writers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many writers write concurrently, each to its own share of the
	// objects. Default 1.
	Count int `yaml:"count,omitempty"`
	// Rate is the writes per second of the whole group. Required without Trace.
	Rate float64 `yaml:"rate,omitempty"`
	// Shape is how the writes are spread over time. Default steady.
	Shape Shape `yaml:"shape,omitempty"`
	// Burst is the number of writes in a burst of the whole group, for shape
	// bursts; each writer makes at least one. Default: the writes of 100 ms.
	Burst int `yaml:"burst,omitempty"`
	// Mix weighs the kinds of writes. Default: updates only.
	Mix Mix `yaml:"mix,omitempty"`
	// Hot is the exponent, above 1, of the Zipf distribution from which the
	// objects to write are drawn: 1.1 is mild, 2 sends most writes to a few
	// keys. It needs objects at the start. Zero means uniform.
	Hot float64 `yaml:"hot,omitempty"`
	// Move is the share of updates, from 0 to 1, that change an object's fields
	// and labels, so that it leaves one selector and enters another.
	Move float64 `yaml:"move,omitempty"`
	// Start is when the group begins to write, and Stop when it ends, both after the
	// start of the load. Default: its start and its end.
	Start time.Duration `yaml:"start,omitempty"`
	Stop  time.Duration `yaml:"stop,omitempty"`
	// Trace is a recorded history that the group replays within its time instead:
	// a file, relative to the scenario's, or git-history, which is shipped. Its
	// objects have the fields dir and ext. It excludes Count, Rate, Shape, Burst,
	// Mix, Hot and Move.
	Trace string `yaml:"trace,omitempty"`
}

// Shape is how writes are spread over time.
type Shape string

// The shapes.
const (
	// Steady writes at equal intervals.
	Steady Shape = "steady"
	// Poisson writes at exponentially distributed intervals, as independent
	// clients do.
	Poisson Shape = "poisson"
	// Bursts writes many objects at once, and none until the next burst is due.
	Bursts Shape = "bursts"
)

// Mix has the relative frequencies of the kinds of writes. If there is no object
// to update or delete, one is created instead.
type Mix struct {
	Create float64 `yaml:"create,omitempty"`
	Update float64 `yaml:"update,omitempty"`
	Delete float64 `yaml:"delete,omitempty"`
	// Emit sends events that are not stored.
	Emit float64 `yaml:"emit,omitempty"`
}

// Total returns the sum of the weights.
func (m Mix) Total() float64 { return m.Create + m.Update + m.Delete + m.Emit }

// Watcher is a group of watchers with the same configuration.
//
// Labels, Fields, Prefix and Key are templates, filled in for each watcher:
//
//	{i}          the watcher's number in the group, from 0
//	{node}       a value of the field or label node, in turn
//	{namespace}  a namespace, in turn
//	{key}        the key of an object that exists at the start, in turn
type Watcher struct {
	// Name is what reports call the group. Default: watchers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many watchers there are. Default 1.
	Count int `yaml:"count,omitempty"`
	// Labels and Fields are selectors; Prefix selects the keys under a path, Key
	// one object.
	Labels string `yaml:"labels,omitempty"`
	Fields string `yaml:"fields,omitempty"`
	Prefix string `yaml:"prefix,omitempty"`
	Key    string `yaml:"key,omitempty"`
	// Initial starts each watch with the present state.
	Initial bool `yaml:"initial,omitempty"`
	// Start is when the first watch is opened; the others follow within Spread.
	// Default: before the first write.
	Start  time.Duration `yaml:"start,omitempty"`
	Spread time.Duration `yaml:"spread,omitempty"`
	// Policy is what happens to a watcher that falls behind. Default park.
	Policy Policy `yaml:"policy,omitempty"`
	// Buffer is by how many events a watcher may lag before it counts as stalled;
	// zero means the engine's default.
	Buffer int `yaml:"buffer,omitempty"`
	// Consumer is how a watcher receives its events. Default batches.
	Consumer Consumer `yaml:"consumer,omitempty"`
	// Consume limits the speed of the consumers.
	Consume Consume `yaml:"consume,omitempty"`
	// Reconnect makes the watchers close their watches and resume.
	Reconnect Reconnect `yaml:"reconnect,omitempty"`
}

// Policy is what happens to a watcher that falls too far behind.
type Policy string

// The policies; see package engine.
const (
	Park      Policy = "park"
	Terminate Policy = "terminate"
	Conflate  Policy = "conflate"
)

// Consumer is how a watcher receives its events.
type Consumer string

// The consumers.
const (
	// Batches takes all events that are ready at once.
	Batches Consumer = "batches"
	// Handler is a function that is called with each event.
	Handler Consumer = "handler"
	// Channel receives each event from a channel.
	Channel Consumer = "channel"
	// Follow lists, watches, resumes and lists again by engine.Follow. It starts
	// with a list, whether Initial is set or not. How far it is behind is not measured.
	Follow Consumer = "follow"
	// Queue does so, too, and passes the changes through a DeltaFIFO into an indexer.
	Queue Consumer = "queue"
)

// Consume limits the speed of a consumer. The zero value is full speed.
type Consume struct {
	// Rate is the highest number of events per second; zero means no limit.
	Rate float64 `yaml:"rate,omitempty"`
	// Every is the time between two pauses of the consumer, and Pause their length.
	Every time.Duration `yaml:"every,omitempty"`
	Pause time.Duration `yaml:"pause,omitempty"`
}

// Slow reports whether the consumer's speed is limited. The scenario then causes
// its latency, which is left out of the totals.
func (c Consume) Slow() bool { return c != Consume{} }

// Reconnect makes a watcher close its watch about once per Every, wait for Away,
// and resume from the last revision that it saw. Watchers of a group do not
// reconnect in step. The zero value never reconnects.
type Reconnect struct {
	Every time.Duration `yaml:"every,omitempty"`
	Away  time.Duration `yaml:"away,omitempty"`
}

// Reader is a group of readers with one rate.
type Reader struct {
	// Name is what reports call the group. Default: readers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many readers read concurrently. Default 1.
	Count int `yaml:"count,omitempty"`
	// Rate is the reads per second of the whole group. Required.
	Rate float64 `yaml:"rate"`
	// Op is what the readers do. Default list.
	Op ReadOp `yaml:"op,omitempty"`
	// Mode says how fresh a read must be. Default latest.
	Mode ReadMode `yaml:"mode,omitempty"`
	// Labels, Fields and Prefix narrow a list; they are templates, see
	// [Watcher].
	Labels string `yaml:"labels,omitempty"`
	Fields string `yaml:"fields,omitempty"`
	Prefix string `yaml:"prefix,omitempty"`
	// Limit is the page size of a list; zero means one page. A cached list has no pages.
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

// The modes; see the functions of package engine with similar names.
const (
	// Latest reads are linearizable.
	Latest ReadMode = "latest"
	// Cached reads return what the cache has.
	Cached ReadMode = "cached"
	// NotOlder reads are not older than the newest write known at their start.
	NotOlder ReadMode = "not-older"
	// Exact reads return the state at the revision of that write.
	Exact ReadMode = "exact"
)

// Cache is a group of object caches. Each holds references to single objects and
// follows their changes, as a kubelet does for the configmaps of its pods.
type Cache struct {
	// Name is what reports call the group. Default: caches-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many caches there are. Default 1.
	Count int `yaml:"count,omitempty"`
	// References is how many references the whole group holds, to objects drawn
	// at random from those of the start; several may refer to the same object. Each
	// cache has at least one. Default: as many as objects.
	References int `yaml:"references,omitempty"`
	// Rate is the reads per second of the whole group. Required.
	Rate float64 `yaml:"rate"`
	// Churn is the share of reads, from 0 to 1, before which the reference is
	// replaced by another.
	Churn float64 `yaml:"churn,omitempty"`
	// Idle is how long an object is followed after its last read; zero means the
	// cache's default.
	Idle time.Duration `yaml:"idle,omitempty"`
}

// Informer is a group of informers. Each keeps a copy of the engine's objects and
// notifies handlers of changes.
type Informer struct {
	// Name is what reports call the group. Default: informers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many informers there are, and Handlers how many handlers each has.
	// Both default to 1.
	Count    int `yaml:"count,omitempty"`
	Handlers int `yaml:"handlers,omitempty"`
	// Prefix selects the keys under a path. It is a template, see [Watcher].
	Prefix string `yaml:"prefix,omitempty"`
	// Policy is what happens to a handler that falls behind. Default merge.
	Policy HandlerPolicy `yaml:"policy,omitempty"`
	// Buffer is how many notifications may wait for a handler; zero means the
	// informer's default.
	Buffer int `yaml:"buffer,omitempty"`
	// Consume limits the speed of the handlers.
	Consume Consume `yaml:"consume,omitempty"`
}

// HandlerPolicy is what happens to an informer's handler that falls behind.
type HandlerPolicy string

// The policies; see package informer.
const (
	MergeChanges HandlerPolicy = "merge"
	Resnapshot   HandlerPolicy = "resnapshot"
	Block        HandlerPolicy = "block"
)

// placeholder matches a name in braces.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Key returns the key of the nth object.
func (o Objects) Key(n int) string {
	return fmt.Sprintf("%s/obj-%d", o.namespace(n), n)
}

// isKey reports whether it is the key of some nth object.
func (o Objects) isKey(key string) bool {
	_, number, _ := strings.Cut(key, "/obj-")
	n, err := strconv.Atoi(number)
	return err == nil && n >= 0 && key == o.Key(n)
}

// isPath reports whether it is a namespace, or the key of some nth object.
func (o Objects) isPath(path string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(path, "ns-"))
	return err == nil && n >= 0 && n < max(1, o.Namespaces) && path == o.namespace(n) || o.isKey(path)
}

// namespace returns the namespace of the nth object.
func (o Objects) namespace(n int) string { return "ns-" + strconv.Itoa(n%max(1, o.Namespaces)) }

// Value returns the nth value of a field or label.
func Value(name string, n int) string { return name + "-" + strconv.Itoa(n) }

// placeholders returns the placeholders that templates may have, sorted.
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

// fill returns the template filled in for the ith member of a group. Unknown
// placeholders stay.
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
		return o.namespace(i), true
	case name == "key" && o.Count > 0:
		return o.Key(i % o.Count), true
	case o.Fields[name] > 0:
		return Value(name, i%o.Fields[name]), true
	case o.Labels[name] > 0:
		return Value(name, i%o.Labels[name]), true
	}
	return "", false
}

// Selection is what one watcher, reader or informer selects.
type Selection struct {
	Labels, Fields, Prefix, Key string
}

// Select returns what the ith watcher of the group selects.
func (p *Plan) Select(w Watcher, i int) Selection {
	o := p.Objects
	return Selection{Labels: o.fill(w.Labels, i), Fields: o.fill(w.Fields, i), Prefix: o.fill(w.Prefix, i), Key: o.fill(w.Key, i)}
}

// SelectRead returns what the ith list of the group selects.
func (p *Plan) SelectRead(r Reader, i int) Selection {
	o := p.Objects
	return Selection{Labels: o.fill(r.Labels, i), Fields: o.fill(r.Fields, i), Prefix: o.fill(r.Prefix, i)}
}

// SelectInformer returns what the ith informer of the group selects.
func (p *Plan) SelectInformer(in Informer, i int) Selection {
	return Selection{Prefix: p.Objects.fill(in.Prefix, i)}
}

// template checks that the placeholders of a template are known, and each stand for one thing.
func (c *checker) template(field, template string, o Objects) (ok bool) {
	before := c.found
	for _, match := range placeholder.FindAllString(template, -1) {
		name := match[1 : len(match)-1]
		_, known := o.value(name, 0)
		fields, labels := o.Fields[name], o.Labels[name]
		switch {
		case !known:
			c.wrong(field, "unknown placeholder "+shortened(match, maxQuoted), "there are "+listed(o.placeholders()))
		case fields+labels > 0 && (name == "i" || name == "namespace" || name == "key" && o.Count > 0):
			c.wrong(field, match+" stands for two things: objects have a field or label of that name", "give that another name")
		case fields > 0 && labels > 0 && fields != labels:
			c.wrong(field, shortened(match, maxQuoted)+" stands for two things: the field and the label of that name have different numbers of values", "give one of them another name")
		}
	}
	return c.found == before
}
