package corekinds

import (
	"cmp"
	"slices"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/lease"
)

// object is the type of the objects of a replica.
type object = unstructured.Unstructured

// Replica returns the configuration of a kind of this package at a replica that knows no Go types, since it learns
// by discovery which kinds its origin serves: with columns, fields for selectors, decoders, and strategic merge
// patches, which discovery does not tell. Schema and Engine are to be set. ok is false for other kinds.
func Replica(of registry.Kind) (cfg registry.Config[unstructured.Unstructured], ok bool) {
	ok = true
	switch of.GroupVersionKind() {
	case core.SchemeGroupVersion.WithKind("ConfigMap"):
		cfg = untyped(ConfigMap())
	case core.SchemeGroupVersion.WithKind("Secret"):
		cfg = untyped(Secret())
	case core.SchemeGroupVersion.WithKind("Namespace"):
		cfg = untyped(namespaceConfig())
	case core.SchemeGroupVersion.WithKind("Event"):
		cfg = untyped(eventConfig(core.SchemeGroupVersion, coreEvents))
	case events.SchemeGroupVersion.WithKind("Event"):
		cfg = untyped(eventConfig(events.SchemeGroupVersion, newEvents))
	case coordination.SchemeGroupVersion.WithKind("Lease"):
		cfg = untyped(lease.Config())
	default:
		ok = false
	}
	cfg.Kind = of
	return cfg, ok
}

// untyped returns the configuration of a kind for objects that are maps.
func untyped[T any](typed registry.Config[T]) registry.Config[object] {
	cfg := registry.Config[object]{
		NoDeleteCollection: typed.NoDeleteCollection, NoName: typed.NoName, NoAge: typed.NoAge, Fields: map[string]func(*object) string{}, Decoders: typed.Decoders,
		StrategicMerge: func(any) (registry.Merge, error) { return typed.StrategicMerge(new(T)) },
		Strategy:       registry.Strategy[object]{CreateOnUpdate: typed.Strategy.CreateOnUpdate, RevisionRequired: typed.Strategy.RevisionRequired},
	}
	for _, c := range typed.Columns {
		cfg.Columns = append(cfg.Columns, registry.Column[object]{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
			Value: func(o *object) any {
				value := new(T)
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, value); err != nil {
					return nil // the origin has another form of the kind
				}
				return c.Value(value)
			},
		})
	}
	for name := range typed.Fields {
		if !slices.Contains(typed.HiddenFields, name) {
			cfg.Fields[name] = textAt(name)
		}
	}
	return cfg
}

// textAt returns a function that returns the text at the path that a field's name is; that of the source of
// an event is not one.
func textAt(name string) func(*object) string {
	if name == "source" {
		component, reporter := textAt("source.component"), textAt("reportingComponent")
		return func(o *object) string { return cmp.Or(component(o), reporter(o)) }
	}
	path := strings.Split(name, ".")
	return func(o *object) string {
		text, _, _ := unstructured.NestedString(o.Object, path...)
		return text
	}
}
