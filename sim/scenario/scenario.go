package scenario

import "time"

// Scenario is a load as its author describes it. Zero fields take defaults,
// which [Scenario.Resolve] fills in and [Plan.Explain] prints.
type Scenario struct {
	// Name is what reports call it. Default: the file's name, or "scenario".
	Name string `yaml:"name,omitempty"`
	// About says in a sentence or two what the scenario is to show.
	About string `yaml:"about,omitempty"`
	// Seed decides every random choice; two runs with one seed write the same
	// objects at the same intended times. Default 1.
	Seed uint64 `yaml:"seed,omitempty"`
	// Duration is how long writers and readers are at work. Default 10 s.
	Duration time.Duration `yaml:"duration,omitempty"`
	// Settle is how long, after that, watchers may take to read what is left.
	// Default 10 s.
	Settle time.Duration `yaml:"settle,omitempty"`

	Engine   Engine    `yaml:"engine,omitempty"`
	Objects  Objects   `yaml:"objects,omitempty"`
	Writers  []Writer  `yaml:"writers,omitempty"`
	Watchers []Watcher `yaml:"watchers,omitempty"`
	Readers  []Reader  `yaml:"readers,omitempty"`
	Caches   []Cache   `yaml:"caches,omitempty"`
	// Informers mirror the engine.
	Informers []Informer `yaml:"informers,omitempty"`
	Faults    []Fault    `yaml:"faults,omitempty"`
	// Assert is what must hold in the end. Default: "lost = 0" and, if nobody is
	// slowed down, "unread = 0" where there are watchers, "stale = 0" where there
	// are caches or informers.
	Assert []Assertion `yaml:"assert,omitempty"`
	// Small says what is smaller in a run that is to take ten seconds.
	Small Small `yaml:"small,omitempty"`

	// dir is where the file is, which traces are relative to.
	dir string
}

// Engine says how the engine under load is configured. Zero fields mean the
// engine's defaults.
type Engine struct {
	// Window is the most events kept to resume from; WindowAge how long they
	// stay otherwise.
	Window    int           `yaml:"window,omitempty"`
	WindowAge time.Duration `yaml:"window-age,omitempty"`
	// Bookmarks is the time between two bookmarks of a watch.
	Bookmarks time.Duration `yaml:"bookmarks,omitempty"`
	// Backoff is the first pause before the engine comes back to a backend that
	// failed, BackoffMax the longest.
	Backoff    time.Duration `yaml:"backoff,omitempty"`
	BackoffMax time.Duration `yaml:"backoff-max,omitempty"`
	// Workers is the number of pool workers; zero means one per CPU.
	Workers int `yaml:"workers,omitempty"`
}

// Objects says what there is when the load begins, and what new objects look
// like. Keys are "ns-<n>/obj-<n>".
type Objects struct {
	// Count is how many there are at the start.
	Count int `yaml:"count,omitempty"`
	// Size is the bytes of an object's payload: anything from Min to Max.
	Size Size `yaml:"size,omitempty"`
	// Namespaces is how many first path segments they are spread over. Default 1.
	Namespaces int `yaml:"namespaces,omitempty"`
	// Fields and Labels name what selectors match on, each with the number of
	// its different values: "node: 50" makes node-0 to node-49.
	Fields map[string]int `yaml:"fields,omitempty"`
	Labels map[string]int `yaml:"labels,omitempty"`
	// Index names the fields that lists are narrowed by. Default: all of them; an
	// empty list is none.
	Index []string `yaml:"index,omitzero"`
}

// Size is a range of bytes, drawn from uniformly. Default 100 to Min, or to 100.
type Size struct {
	Min int `yaml:"min,omitempty"`
	Max int `yaml:"max,omitempty"`
}

// Small says what is smaller with [Options].Small. All times of starts, stops
// and faults shrink as Duration does. Zero fields, and what is not named, stay.
type Small struct {
	Duration time.Duration `yaml:"duration,omitempty"`
	Settle   time.Duration `yaml:"settle,omitempty"`
	// Objects is the number of objects.
	Objects int `yaml:"objects,omitempty"`
	// Fields is the number of values, by field.
	Fields map[string]int `yaml:"fields,omitempty"`
	// Watchers is the count, Rates the rate, by the name of the group.
	Watchers map[string]int     `yaml:"watchers,omitempty"`
	Rates    map[string]float64 `yaml:"rates,omitempty"`
	// References is the number of references, by the name of the group of caches.
	References map[string]int `yaml:"references,omitempty"`
}
