package corekinds

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The longest texts of an event, in bytes.
const (
	maxEventWord = 128 // of reportingInstance, action and reason
	maxEventNote = 1024
)

// eventRules are the rules of a group of events. The core group has all its old ones; events.k8s.io has others besides.
type eventRules struct {
	// controller is the group's name of the field for what reports an event.
	controller string
	strict     bool
}

var (
	coreRules = eventRules{controller: "reportingComponent"}
	newRules  = eventRules{controller: "reportingController", strict: true}
)

// validate returns what is wrong with an event. As in Kubernetes, fields have their names in the core group, except
// the one that reports.
func (r eventRules) validate(_ context.Context, e, old *event) field.ErrorList {
	wrong := r.validateAny(e)
	switch {
	case !r.strict:
		return wrong
	case old == nil:
		return append(wrong, validateNewEvent(e)...)
	}
	return append(wrong, validateEventUpdate(e, old)...)
}

// validateAny has the rules of both groups.
func (r eventRules) validateAny(e *event) field.ErrorList {
	if e.EventTime.IsZero() { // it is in the old form
		return validateOldNamespace(e)
	}
	wrong := append(validateNamespace(e), requireWord(e.ReportingController, r.controller, 0)...)
	for _, problem := range validation.IsQualifiedName(e.ReportingController) {
		wrong = append(wrong, field.Invalid(field.NewPath(r.controller), e.ReportingController, problem))
	}
	wrong = append(wrong, requireWord(e.ReportingInstance, "reportingInstance", maxEventWord)...)
	wrong = append(wrong, requireWord(e.Action, "action", maxEventWord)...)
	wrong = append(wrong, requireWord(e.Reason, "reason", maxEventWord)...)
	if len(e.Message) > maxEventNote {
		wrong = append(wrong, tooManyCharacters("message", maxEventNote))
	}
	return wrong
}

// validateOldNamespace refuses an event in the old form that is not in the namespace of its object.
func validateOldNamespace(e *event) field.ErrorList {
	about := e.InvolvedObject.Namespace
	if about == e.Namespace || about == "" && e.Namespace == metav1.NamespaceDefault {
		return nil
	}
	return elsewhere(about)
}

// validateNamespace refuses an event about an object of the cluster in a namespace that is not for such events.
func validateNamespace(e *event) field.ErrorList {
	about := e.InvolvedObject.Namespace
	if about != "" || e.Namespace == metav1.NamespaceDefault || e.Namespace == metav1.NamespaceSystem {
		return nil
	}
	return elsewhere(about)
}

func elsewhere(about string) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace")}
}

// requireWord refuses an empty text and, unless most is zero, one of more bytes.
func requireWord(text, name string, most int) field.ErrorList {
	switch {
	case text == "":
		return field.ErrorList{field.Required(field.NewPath(name), "")}
	case most > 0 && len(text) > most:
		return field.ErrorList{tooManyCharacters(name, most)}
	}
	return nil
}

func tooManyCharacters(name string, most int) *field.Error {
	return field.Invalid(field.NewPath(name), "", fmt.Sprintf("can have at most %d characters", most))
}

// validateNewEvent has the rules for what is created by events.k8s.io.
func validateNewEvent(e *event) field.ErrorList {
	wrong := validateSeries(e)
	for _, problem := range apivalidation.NameIsDNSSubdomain(e.Name, false) {
		wrong = append(wrong, field.Invalid(field.NewPath("metadata", "name"), e.Name, problem))
	}
	if e.EventTime.IsZero() {
		wrong = append(wrong, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != core.EventTypeNormal && e.Type != core.EventTypeWarning {
		wrong = append(wrong, field.Invalid(field.NewPath("type"), "", "has invalid value: "+e.Type))
	}
	for _, old := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !e.FirstTimestamp.IsZero()}, {"lastTimestamp", !e.LastTimestamp.IsZero()},
		{"count", e.Count != 0}, {"source", e.Source != core.EventSource{}},
	} {
		if old.set {
			wrong = append(wrong, field.Invalid(field.NewPath(old.name), "", "needs to be unset"))
		}
	}
	return wrong
}

func validateSeries(e *event) (wrong field.ErrorList) {
	if e.Series == nil {
		return nil
	}
	if e.Series.Count < 2 {
		wrong = append(wrong, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if e.Series.LastObservedTime.IsZero() {
		wrong = append(wrong, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return wrong
}

// validateEventUpdate has the rules for updates by events.k8s.io: the series may change, and metadata.
func validateEventUpdate(e, old *event) (wrong field.ErrorList) {
	if !equality.Semantic.DeepEqual(e.Series, old.Series) {
		wrong = validateSeries(e)
	}
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"involvedObject", e.InvolvedObject, old.InvolvedObject}, {"reason", e.Reason, old.Reason}, {"message", e.Message, old.Message},
		{"source", e.Source, old.Source}, {"firstTimestamp", e.FirstTimestamp, old.FirstTimestamp}, {"lastTimestamp", e.LastTimestamp, old.LastTimestamp},
		{"count", e.Count, old.Count}, {"type", e.Type, old.Type}, {"eventTime", inMicroseconds(e), inMicroseconds(old)},
		{"action", e.Action, old.Action}, {"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController}, {"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		wrong = append(wrong, apivalidation.ValidateImmutableField(f.now, f.was, field.NewPath(f.name))...)
	}
	return wrong
}

// inMicroseconds returns the time of an event without what clients may drop of it.
func inMicroseconds(e *event) metav1.MicroTime {
	return metav1.MicroTime{Time: e.EventTime.Truncate(time.Microsecond).UTC()}
}
