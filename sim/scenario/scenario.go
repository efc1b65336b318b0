package scenario

import "time"

// Scenario is a load as its author describes it. [Scenario.Resolve] replaces zero
// fields by defaults, and [Plan.Explain] prints them. A file must leave out what is to be
// the default: there, a zero Seed, Duration, Settle, number of members or of references, or
// share of a fault, and a [Mix] of zeros, are errors.
type Scenario struct {
	// Name is the scenario's name in reports. Default: the file's name, or
	// "scenario".
	Name string `yaml:"name,omitempty"`
	// About says in a sentence or two what the scenario shows.
	About string `yaml:"about,omitempty"`
	// Seed decides every random choice; two runs with one seed write the same
	// objects at the same intended times. Default 1.
	Seed uint64 `yaml:"seed,omitempty"`
	// Duration is how long writers and readers run. Default 10 s.
	Duration time.Duration `yaml:"duration,omitempty"`
	// Settle is how long watchers may take after that to read the remaining
	// events. Default 10 s.
	Settle time.Duration `yaml:"settle,omitempty"`

	Engine    Engine     `yaml:"engine,omitempty"`
	Objects   Objects    `yaml:"objects,omitempty"`
	Writers   []Writer   `yaml:"writers,omitempty"`
	Watchers  []Watcher  `yaml:"watchers,omitempty"`
	Readers   []Reader   `yaml:"readers,omitempty"`
	Caches    []Cache    `yaml:"caches,omitempty"`
	Informers []Informer `yaml:"informers,omitempty"`
	Faults    []Fault    `yaml:"faults,omitempty"`
	// Assert is what must hold at the end. Default: "lost = 0" and "unread = 0" for watchers,
	// "stale = 0" for caches and informers, "write-errors = 0" unless a fault lasts, and
	// "read-errors = 0" without faults. If some groups are slow, the others are named instead,
	// as in "healthy.unread = 0".
	Assert []Assertion `yaml:"assert,omitempty"`
	// Small has the smaller values for a run of ten seconds.
	Small Small `yaml:"small,omitempty"`

	// dir is the directory of the file. The paths of traces are relative to it.
	dir string
}

// Engine configures the engine under load. Zero fields mean the engine's defaults.
type Engine struct {
	// Window is the maximum number of events kept for resuming; WindowAge is the minimum
	// time for which an event is kept if there is room.
	Window    int           `yaml:"window,omitempty"`
	WindowAge time.Duration `yaml:"window-age,omitempty"`
	// Bookmarks is the time between two bookmarks of a watch.
	Bookmarks time.Duration `yaml:"bookmarks,omitempty"`
	// Backoff is the first pause before the engine retries a backend that failed,
	// BackoffMax the longest, which must not be less.
	Backoff    time.Duration `yaml:"backoff,omitempty"`
	BackoffMax time.Duration `yaml:"backoff-max,omitempty"`
	// Workers is the number of pool workers; zero means one per CPU.
	Workers int `yaml:"workers,omitempty"`
}

// Objects describes the objects that exist when the load begins, and those that
// writers create. Keys are "ns-<n>/obj-<n>".
type Objects struct {
	// Count is how many objects exist at the start.
	Count int `yaml:"count,omitempty"`
	// Size is the size of an object's payload.
	Size Size `yaml:"size,omitempty"`
	// Namespaces is how many namespaces, the first segments of keys, the objects
	// are spread over. Default 1.
	Namespaces int `yaml:"namespaces,omitempty"`
	// Fields and Labels are the attributes that selectors match on, each with its
	// number of different values: "node: 50" gives node-0 to node-49.
	Fields map[string]int `yaml:"fields,omitempty"`
	Labels map[string]int `yaml:"labels,omitempty"`
	// Index names the fields that have an index. Default: all; an empty list
	// means none.
	Index []string `yaml:"index,omitzero"`
}

// Size is a range of bytes from which sizes are drawn uniformly. Min defaults to
// 100 if Max is zero, too; Max defaults to Min, or to 100 if that is larger.
type Size struct {
	Min int `yaml:"min,omitempty"`
	Max int `yaml:"max,omitempty"`
}

// Small has the values that [Options].Small sets in place of those of the scenario. The
// times of starts, stops and faults shrink in proportion to Duration. Zero fields, and
// groups that are not named, stay as they are.
type Small struct {
	Duration time.Duration `yaml:"duration,omitempty"`
	Settle   time.Duration `yaml:"settle,omitempty"`
	// Objects is the number of objects.
	Objects int `yaml:"objects,omitempty"`
	// Fields is the number of values, by field.
	Fields map[string]int `yaml:"fields,omitempty"`
	// Watchers is the count and Rates the rate, by the name of the group.
	Watchers map[string]int     `yaml:"watchers,omitempty"`
	Rates    map[string]float64 `yaml:"rates,omitempty"`
	// References is the number of references, by the name of the group of caches.
	References map[string]int `yaml:"references,omitempty"`
}
