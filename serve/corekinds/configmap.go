package corekinds

import (
	"context"
	"maps"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
)

// isImmutable is what Kubernetes says of a change that it refuses.
const isImmutable = "field is immutable when `immutable` is set"

// ConfigMap returns the configuration of the kind ConfigMap, for [registry.New]. Set its Engine to choose the
// storage.
func ConfigMap() registry.Config[core.ConfigMap] {
	return registry.Config[core.ConfigMap]{
		Kind: registry.Kind{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", ShortNames: []string{"cm"}},
		Columns: []registry.Column[core.ConfigMap]{{
			Name: "Data", Type: "string", Description: "How many keys it has.", Value: func(m *core.ConfigMap) any { return len(m.Data) + len(m.BinaryData) },
		}},
		Strategy: registry.Strategy[core.ConfigMap]{NoGeneration: true, Validate: validateConfigMap},
		Decoders: protobuf.Decoders[core.ConfigMap]("ConfigMap"), StrategicMerge: strategic.New, Apply: apply.New,
	}
}

func validateConfigMap(_ context.Context, m, old *core.ConfigMap) (wrong field.ErrorList) {
	if old != nil && isTrue(old.Immutable) {
		wrong = append(wrong, unchanged(m.Immutable, m.Data, old.Data)...)
		if !equality.Semantic.DeepEqual(m.BinaryData, old.BinaryData) {
			wrong = append(wrong, field.Forbidden(field.NewPath("binaryData"), isImmutable))
		}
	}
	texts, bytes := field.NewPath("data"), field.NewPath("binaryData")
	wrong = append(append(wrong, validateKeys(m.Data, texts)...), validateKeys(m.BinaryData, bytes)...)
	for key := range m.Data {
		if _, twice := m.BinaryData[key]; twice {
			wrong = append(wrong, field.Invalid(texts.Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	if size(m.Data)+size(m.BinaryData) > core.MaxSecretSize {
		wrong = append(wrong, field.TooLong(field.NewPath(""), "", core.MaxSecretSize)) // of the whole object
	}
	return wrong
}

// unchanged returns the changes of an object that is immutable: it stays so, and keeps its data.
func unchanged[V string | []byte](immutable *bool, data, old map[string]V) (wrong field.ErrorList) {
	if !isTrue(immutable) {
		wrong = append(wrong, field.Forbidden(field.NewPath("immutable"), isImmutable))
	}
	if !equality.Semantic.DeepEqual(data, old) {
		wrong = append(wrong, field.Forbidden(field.NewPath("data"), isImmutable))
	}
	return wrong
}

// validateKeys refuses keys that cannot be names of files.
func validateKeys[V string | []byte](data map[string]V, path *field.Path) (wrong field.ErrorList) {
	for key := range maps.Keys(data) {
		for _, problem := range validation.IsConfigMapKey(key) {
			wrong = append(wrong, field.Invalid(path.Key(key), key, problem))
		}
	}
	return wrong
}

// size returns how many bytes the values have.
func size[V string | []byte](data map[string]V) (bytes int) {
	for _, value := range data {
		bytes += len(value)
	}
	return bytes
}

func isTrue(b *bool) bool { return b != nil && *b }
