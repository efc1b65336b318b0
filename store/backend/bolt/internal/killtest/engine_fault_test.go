package killtest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/engine"
)

// fault is a defect of a consumer, or a moment at which it kills its process, so that the
// test can show what it finds. The zero value is none.
type fault struct {
	kind, consumer string
	// events is how many changes the consumer was given.
	events int
}

const (
	// diesUnsaved kills the process between an event and its checkpoint.
	diesUnsaved = "dies-unsaved"
	// diesEarly saves the checkpoint first, and kills the process before the event.
	diesEarly = "dies-early"
	// diesWell kills the process when all is saved.
	diesWell = "dies-well"
	// loses leaves out an event, and repeats has one twice.
	loses, repeats = "loses", "repeats"
	// rewinds begins before what was saved.
	rewinds = "rewinds"
)

// The fault is at an event that is neither the first nor the last.
const faultyEvent, lastFaultyEvent = 10, 30

func (f fault) String() string { return f.kind + "/" + f.consumer }

func parseFault(text string) fault {
	kind, consumer, _ := strings.Cut(text, "/")
	return fault{kind: kind, consumer: consumer}
}

// start returns the checkpoint at which a consumer begins that has saved one.
func (f *fault) start(saved engine.Checkpoint) engine.Checkpoint {
	if f.kind == rewinds {
		saved.Revision -= 3
	}
	return saved
}

// before returns the events as the consumer handles them, and whether it saves their
// checkpoint first.
func (f *fault) before(events []engine.Event[thing]) (handled []engine.Event[thing], early bool) {
	at := -1
	for i, ev := range events {
		if ev.Type == engine.Bookmark {
			continue
		}
		if f.events++; f.events == faultyEvent {
			at = i
		}
	}
	if at < 0 {
		return events, false
	}
	switch f.kind {
	case loses:
		events = slices.Delete(slices.Clone(events), at, at+1)
	case repeats:
		events = slices.Insert(slices.Clone(events), at, events[at])
	}
	return events, f.kind == diesEarly
}

// unsaved comes between events and their checkpoint.
func (f *fault) unsaved() {
	if f.kind == diesUnsaved && f.events > faultyEvent {
		killSelf()
	}
}

// saved comes after it.
func (f *fault) saved() {
	if f.kind != "" && f.events > lastFaultyEvent {
		killSelf()
	}
}

// killSelf kills this process.
func killSelf() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	select {}
}
