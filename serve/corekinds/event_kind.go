package corekinds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
)

// eventForm is what differs between the kinds of the two groups of events.
type eventForm struct {
	// like points to a zero value of the Go type that clients have for the kind.
	like     any
	schema   func(registry.Kind) (json.RawMessage, error)
	decoders map[string]func([]byte) ([]byte, error)
	rules    eventRules
	// fields are those that selectors may name, and hidden those of the other group.
	fields, hidden map[string]func(*event) string
}

var (
	coreEvents = eventForm{&core.Event{}, schemaOfEvent[core.Event], protobuf.Decoders[core.Event]("Event"), coreRules, coreEventFields, newEventFields}
	newEvents  = eventForm{&events.Event{}, schemaOfEvent[events.Event], protobuf.Decoders[events.Event]("Event"), newRules, newEventFields, coreEventFields}
)

// eventConfig returns the configuration of the events of a group, without a schema, server-side apply and a time to live.
func eventConfig(of schema.GroupVersion, form eventForm) registry.Config[event] {
	cfg := registry.Config[event]{
		Kind:    registry.Kind{Group: of.Group, Version: of.Version, Kind: "Event", Plural: "events", ShortNames: []string{"ev"}},
		Columns: eventColumns, NoName: true, NoAge: true,
		Fields: maps.Clone(form.fields), Decoders: form.decoders,
		StrategicMerge: func(any) (registry.Merge, error) { return strategic.New(form.like) },
		Strategy: registry.Strategy[event]{
			ValidateName: func(string, bool) []string { return nil }, Validate: form.rules.validate, CreateOnUpdate: true, NoGeneration: true,
		},
	}
	for name, value := range form.hidden { // stores of the same objects have the same fields
		if cfg.Fields[name] == nil {
			cfg.Fields[name], cfg.HiddenFields = value, append(cfg.HiddenFields, name)
		}
	}
	return cfg
}

// coreEventFields are the fields for selectors of the core group.
var coreEventFields = referenceFields("involvedObject", map[string]func(*event) string{
	"reason":             func(e *event) string { return e.Reason },
	"reportingComponent": func(e *event) string { return e.ReportingController },
	"source":             func(e *event) string { return cmp.Or(e.Source.Component, e.ReportingController) },
	"type":               func(e *event) string { return e.Type },
})

// newEventFields are the fields for selectors of events.k8s.io.
var newEventFields = referenceFields("regarding", map[string]func(*event) string{
	"reason":              func(e *event) string { return e.Reason },
	"reportingController": func(e *event) string { return e.ReportingController },
	"type":                func(e *event) string { return e.Type },
})

// referenceFields adds the fields of the object that events are about, which a group calls name.
func referenceFields(name string, all map[string]func(*event) string) map[string]func(*event) string {
	for part, value := range map[string]func(*core.ObjectReference) string{
		"kind":            func(r *core.ObjectReference) string { return r.Kind },
		"namespace":       func(r *core.ObjectReference) string { return r.Namespace },
		"name":            func(r *core.ObjectReference) string { return r.Name },
		"uid":             func(r *core.ObjectReference) string { return string(r.UID) },
		"apiVersion":      func(r *core.ObjectReference) string { return r.APIVersion },
		"resourceVersion": func(r *core.ObjectReference) string { return r.ResourceVersion },
		"fieldPath":       func(r *core.ObjectReference) string { return r.FieldPath },
	} {
		all[name+"."+part] = func(e *event) string { return value(&e.InvolvedObject) }
	}
	return all
}

// eventColumns are the columns of tables of events, of both groups.
var eventColumns = []registry.Column[event]{
	{Name: "Last Seen", Type: "string", Description: "How long ago it was last observed.", Value: func(e *event) any { return ago(e.lastSeen()) }},
	{Name: "Type", Type: "string", Description: "Normal or Warning.", Value: func(e *event) any { return e.Type }},
	{Name: "Reason", Type: "string", Description: "Why it has happened, in one word.", Value: func(e *event) any { return e.Reason }},
	{Name: "Object", Type: "string", Description: "The object that it is about.", Value: func(e *event) any {
		about := strings.ToLower(e.InvolvedObject.Kind)
		if e.InvolvedObject.Name != "" {
			about += "/" + e.InvolvedObject.Name
		}
		return about
	}},
	{Name: "Subobject", Type: "string", Priority: 1, Description: "The part of the object that it is about.", Value: func(e *event) any { return e.InvolvedObject.FieldPath }},
	{Name: "Source", Type: "string", Priority: 1, Description: "What has reported it.", Value: func(e *event) any { return e.reporter() }},
	{Name: "Message", Type: "string", Description: "What has happened.", Value: func(e *event) any { return strings.TrimSpace(e.Message) }},
	{Name: "First Seen", Type: "string", Priority: 1, Description: "How long ago it was first observed.", Value: func(e *event) any { return ago(e.firstSeen()) }},
	{Name: "Count", Type: "string", Priority: 1, Description: "How often it was observed.", Value: func(e *event) any { return fmt.Sprint(e.observed()) }},
	{Name: "Name", Type: "string", Format: "name", Priority: 1, Description: "The name of the event.", Value: func(e *event) any { return e.Name }},
}

// firstSeen returns when the event was first observed, zero if that is not known.
func (e *event) firstSeen() time.Time {
	if !e.FirstTimestamp.IsZero() {
		return e.FirstTimestamp.Time
	}
	return e.EventTime.Time
}

// lastSeen returns when the event was last observed, zero if that is not known.
func (e *event) lastSeen() time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.firstSeen()
}

// observed returns how often the event was observed. The newer group has no count for one that was once.
func (e *event) observed() int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return cmp.Or(e.Count, 1)
}

// reporter returns what has reported the event, and where it runs.
func (e *event) reporter() string {
	name, at := cmp.Or(e.Source.Component, e.ReportingController), cmp.Or(e.Source.Host, e.ReportingInstance)
	if at == "" {
		return name
	}
	return name + ", " + at
}

func ago(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}
