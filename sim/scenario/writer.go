package scenario

import "time"

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
