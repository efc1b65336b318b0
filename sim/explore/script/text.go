package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/engine"
)

// UnmarshalJSON replaces the scenario by the one that was kept as JSON. It refuses fields that
// scenarios do not have.
func (s *Scenario) UnmarshalJSON(kept []byte) error {
	type fields Scenario // without this method
	var read fields
	d := json.NewDecoder(bytes.NewReader(kept))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	*s = Scenario(read)
	return nil
}

var consumerNames = [consumers]string{"pull", "batches", "channel", "loop", "handler", "listing handler", "processor"}

func (c Consumer) String() string { return nameOf("Consumer", c, consumerNames[:]) }

// MarshalText writes the consumer's name.
func (c Consumer) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote, or returns a [*engine.ConfigError].
func (c *Consumer) UnmarshalText(text []byte) error {
	return parseName("Consumer", text, consumerNames[:], c)
}

var verbNames = [verbs]string{
	Write: "write", Lease: "lease", Remove: "delete", Emit: "emit",
	Create: "create", Change: "change", RemoveIf: "delete old", Race: "race", Transact: "transaction", Turns: "turns", Settle: "settle",
	Watch: "watch", Take: "take", Resume: "resume", Stop: "stop",
	Get: "get", List: "list", WaitFor: "wait for", Pages: "pages", Follow: "list and watch", WatchLastList: "watch the last list", NextPage: "next page",
	Subscribe: "subscribe", Index: "index", Acquire: "acquire", Fetch: "fetch", Release: "release", Pass: "time passes", Jump: "clock jumps",
	Hangup: "storage closes watches", Outage: "storage loses watches", Expire: "storage expires watches",
	Lose: "storage loses an event", Repeat: "storage repeats an event",
	FailLists: "lists fail", FailWatches: "watches fail", SlowLists: "lists are slow", FailCalls: "calls fail", LoseAnswers: "answers to writes are lost",
	Block: "storage goes silent", Unblock: "storage delivers again",
	Compact: "compact", Discard: "discard", Rewind: "storage goes back", Rewrite: "storage goes back and has other writes", Recover: "engine recovers",
	Cancel: "context ends", Panic: "handler panics", Fail: "handler fails", Slow: "slow is actor",
}

func (v Verb) String() string { return nameOf("Verb", v, verbNames[:]) }

// MarshalText writes the verb's name.
func (v Verb) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText wrote, or returns a [*engine.ConfigError].
func (v *Verb) UnmarshalText(text []byte) error { return parseName("Verb", text, verbNames[:], v) }

// nameOf returns the name of v among those of its type, or the type and the number if v has
// no name.
func nameOf[V ~uint8](of string, v V, names []string) string {
	if int(v) >= len(names) || names[v] == "" {
		return fmt.Sprintf("%s(%d)", of, v)
	}
	return names[v]
}

// parseName sets v to the value with the name, or returns a [*engine.ConfigError].
func parseName[V ~uint8](of string, name []byte, names []string, v *V) error {
	i := slices.Index(names, string(name))
	if i < 0 || names[i] == "" {
		given := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" })
		return &engine.ConfigError{Field: of, Problem: fmt.Sprintf("is %q; give one of: %s", name, strings.Join(given, ", "))}
	}
	*v = V(i)
	return nil
}

func (s Setup) String() string {
	return fmt.Sprintf("an engine with a window of %d to %d events and at most %d bytes in chunks of %d, for %v; bookmarks every %v; verified every %v; indexed: %v; storage that blocks: %v, in batches of %d, with its state shared: %v, what was before a change left out: %v, and several changes at a revision: %v; listed again if behind by more than %d; an informer whose handler falls behind by %d by policy %v and gets all again every %v, and which has an index: %v; an object cache that forgets after %v; a second engine without a cache: %v; %d changes before it starts, in storage that keeps its history: %v",
		s.Window.MinEvents, s.Window.MaxEvents, s.Window.MaxBytes, s.Window.ChunkSize, s.Window.MinAge, s.BookmarkPeriod, s.VerifyEvery, s.Indexed, s.Blocks, s.Batch, s.SharesState, s.NoPrev, s.Transactions, s.ListWhenBehind, s.InformerBuffer, s.InformerPolicy, s.InformerResync, s.InformerIndexed, s.ObjectsIdle, s.Uncached, s.Before, s.KeepsHistory)
}

// String describes the step for people, as in "take w3 n=5".
func (s Step) String() string {
	var b strings.Builder
	b.WriteString(s.Do.String())
	switch s.Do {
	case Watch, Take, Resume, Stop, Follow, WatchLastList, Cancel, Panic, Fail:
		fmt.Fprintf(&b, " w%d", s.Watch)
	}
	if s.Do == Resume {
		fmt.Fprintf(&b, " as w%d", s.Other)
	}
	if s.Uncached {
		b.WriteString(" without cache")
	}
	if s.Unnoticed {
		b.WriteString(" unnoticed")
	}
	if s.N != 0 || s.Do == Compact || s.Do == Discard || s.Do == Rewind || s.Do == Slow {
		fmt.Fprintf(&b, " n=%d", s.N)
	}
	if s.Turns >= 0 && s.Do.calls() {
		fmt.Fprintf(&b, " patience=%d", s.Turns)
	}
	if s.For != 0 {
		fmt.Fprintf(&b, " for=%v", s.For)
	}
	if s.Do.seeded() {
		fmt.Fprintf(&b, " seed=%#x", s.Seed)
	}
	if s.Start != nil {
		fmt.Fprintf(&b, " by %v", s.Start)
	}
	if s.Meanwhile != nil {
		fmt.Fprintf(&b, ", after %d turns of that: %v", s.After, s.Meanwhile)
	}
	return b.String()
}

func (s *Start) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v selection=%d policy=%v", s.Consumer, s.Selection, s.Options.Policy)
	for _, flag := range []struct {
		on   bool
		text string
	}{
		{s.Uncached, "without cache"},
		{s.Skip, "skip"},
		{s.Options.InitialState, "state"},
		{s.Options.Linearizable, "latest"},
		{s.Options.Bookmarks, "bookmarks"},
		{s.Options.Progress, "progress"},
		{s.Options.OnPool, "on-pool"},
		{s.Options.Detached, "detached"},
		{s.Options.Buffer > 0, fmt.Sprintf("buffer=%d", s.Options.Buffer)},
		{s.Options.Timeout > 0, fmt.Sprintf("timeout=%v", s.Options.Timeout)},
		{s.Options.Last > 0, fmt.Sprintf("last=%d", s.Options.Last)},
		{s.Options.From > 0 && s.Back == 0, fmt.Sprintf("from=%d", s.Options.From)},
		{s.Back != 0, fmt.Sprintf("from=newest%+d", 1-s.Back)},
	} {
		if flag.on {
			b.WriteString(" " + flag.text)
		}
	}
	return b.String()
}

// seeded reports whether a step with the verb uses its seed.
func (v Verb) seeded() bool {
	switch v {
	case Write, Lease, Remove, Emit, Create, Change, RemoveIf, Race, Transact, Get, List, WaitFor, Pages, Follow, NextPage, Acquire, Fetch, Release, LoseAnswers, Rewind, Rewrite:
		return true
	}
	return false
}

// calls reports whether a step with the verb makes a call that may wait.
func (v Verb) calls() bool {
	switch v {
	case Watch, Take, Resume, Get, List, WaitFor, Fetch, Follow, WatchLastList, Discard:
		return true
	}
	return false
}
