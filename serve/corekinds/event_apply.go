package corekinds

import (
	"context"
	"encoding/json"

	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// eventConfigs returns the configurations of the events of both groups, without a time to live. What managers own by
// writes in one group they own in the other one, too, as in Kubernetes.
func eventConfigs() (older, newer registry.Config[event], err error) {
	older, newer = eventConfig(core.SchemeGroupVersion, coreEvents), eventConfig(events.SchemeGroupVersion, newEvents)
	if older.Schema, err = coreEvents.schema(older.Kind); err != nil {
		return older, newer, err
	}
	if newer.Schema, err = newEvents.schema(newer.Kind); err != nil {
		return older, newer, err
	}
	older.Apply = apply.Forms(map[schema.GroupVersion]json.RawMessage{
		core.SchemeGroupVersion: older.Schema, events.SchemeGroupVersion: newer.Schema,
	}, convertEvent)
	newer.Apply = older.Apply
	return older, newer, nil
}

// convertEvent returns an event in the form of a group.
func convertEvent(object map[string]any, to schema.GroupVersion) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	e.APIVersion = to.String()
	if text, err = json.Marshal(e); err != nil {
		return nil, err
	}
	var converted map[string]any
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, &converted)
	return converted, err
}

// schemaOfEvent returns the schema of a Go type of events, which a kind of that type would have. References to objects
// have one owner each, which the tags of Kubernetes' types do not say.
func schemaOfEvent[T any, P registry.Ptr[T]](kind registry.Kind) (json.RawMessage, error) {
	answers := func(context.Context, *T) error { return nil }
	v, err := registry.NewVirtual[T, P](registry.VirtualConfig[T]{Kind: kind, Answer: answers})
	if err != nil {
		return nil, err
	}
	var of map[string]any
	if err := json.Unmarshal(v.Resources()[0].Info().Schema, &of); err != nil {
		return nil, err
	}
	fields := of["properties"].(map[string]any)
	for _, name := range []string{"involvedObject", "regarding", "related"} {
		if reference, has := fields[name].(map[string]any); has {
			reference["x-kubernetes-map-type"] = "atomic"
		}
	}
	return json.Marshal(of)
}
