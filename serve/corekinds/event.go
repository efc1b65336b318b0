package corekinds

import (
	"bytes"
	"encoding/json"

	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// event is an event of both groups: the core group and events.k8s.io, which have other names for its fields. Its
// JSON, in storage, too, is that of the group that its apiVersion names.
type event core.Event

// MarshalJSON returns the event in the form of its group.
func (e event) MarshalJSON() ([]byte, error) {
	if e.APIVersion == events.SchemeGroupVersion.String() {
		return json.Marshal(e.asNew())
	}
	return json.Marshal(core.Event(e))
}

// UnmarshalJSON reads an event of either group.
func (e *event) UnmarshalJSON(text []byte) error {
	isNew, err := isOfNewGroup(text)
	if err != nil {
		return err
	}
	if !isNew {
		return kjson.UnmarshalCaseSensitivePreserveInts(text, (*core.Event)(e))
	}
	var of events.Event
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &of); err != nil {
		return err
	}
	*e = ofNew(&of)
	return nil
}

// isOfNewGroup reports whether the JSON of an event is of events.k8s.io. If it names no group, which the path of a
// request does then, it is of that if it has a field that the other does not have.
func isOfNewGroup(text []byte) (bool, error) {
	var given struct {
		metav1.TypeMeta
		Regarding, Note, ReportingController json.RawMessage
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&given); err != nil {
		return false, err
	}
	if given.APIVersion != "" {
		return given.APIVersion == events.SchemeGroupVersion.String(), nil
	}
	return given.Regarding != nil || given.Note != nil || given.ReportingController != nil, nil
}

// asNew returns the event as events.k8s.io has it.
func (e *event) asNew() events.Event {
	return events.Event{
		TypeMeta: e.TypeMeta, ObjectMeta: e.ObjectMeta,
		EventTime: e.EventTime, Series: (*events.EventSeries)(e.Series),
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, Regarding: e.InvolvedObject, Related: e.Related, Note: e.Message, Type: e.Type,
		DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count,
	}
}

// ofNew returns an event of events.k8s.io.
func ofNew(e *events.Event) event {
	return event{
		TypeMeta: e.TypeMeta, ObjectMeta: e.ObjectMeta,
		EventTime: e.EventTime, Series: (*core.EventSeries)(e.Series),
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, InvolvedObject: e.Regarding, Related: e.Related, Message: e.Note, Type: e.Type,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
	}
}
