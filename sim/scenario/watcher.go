package scenario

import "time"

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
