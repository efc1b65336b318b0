package crd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
)

// Rules evaluates the rules in CEL of schemas, x-kubernetes-validations. Package registry/crd/cel
// does, in a module of its own, since CEL has many dependencies. Its methods, and the functions
// that they return, are called concurrently. It never gains methods.
type Rules interface {
	// Check returns what is wrong with the rules of a CustomResourceDefinition and with the
	// schemas that have them, by field. Both arguments are JSON: old is the one that the
	// definition replaces, nil for a new one.
	Check(definition, old json.RawMessage) field.ErrorList
	// Compile returns an evaluator of the rules of a schema, the openAPIV3Schema of a version.
	// A rule that does not compile refuses every object.
	Compile(schema json.RawMessage) Evaluate
}

// Evaluate returns what is wrong with an object by the rules of its schema, and what to warn its
// writer of. old is the object that it replaces, nil for a new one. It changes neither.
type Evaluate func(ctx context.Context, o, old *unstructured.Unstructured) (wrong field.ErrorList, warnings []string)

// RulesError reports what is wrong with the rules of a manifest, and with the schemas that have
// them.
type RulesError struct {
	// Name is that of the definition.
	Name string
	// Errors are by the fields of the manifest.
	Errors field.ErrorList
}

func (e *RulesError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s: %v", quoted(e.Name), e.Errors.ToAggregate())
}

// Is makes errors.Is(err, ErrManifest) true.
func (e *RulesError) Is(target error) bool { return target == ErrManifest }

// checkRules refuses rules that cannot be evaluated. old is the definition that the manifest
// replaces, or nil.
func (m *manifest) checkRules(old *unstructured.Unstructured) error {
	hasRules := func(v version) bool { return bytes.Contains(v.Schema.OpenAPI, []byte(`"x-kubernetes-validations"`)) }
	if m.rules == nil || !slices.ContainsFunc(m.Spec.Versions, hasRules) {
		return nil
	}
	var before json.RawMessage
	if old != nil {
		var err error
		if before, err = json.Marshal(old.Object); err != nil {
			return fmt.Errorf("%w: %w", ErrManifest, err)
		}
	}
	if wrong := m.rules.Check(m.text, before); len(wrong) > 0 {
		return &RulesError{m.Metadata.Name, wrong}
	}
	return nil
}

// readRules has the rules of a version evaluated or, without [Options].Rules, noted.
func (d *Definition) readRules(m *manifest, v *version) {
	switch n := d.schema.rules(); {
	case n > 0 && m.rules != nil:
		d.evaluate = m.rules.Compile(v.Schema.OpenAPI)
	case n > 0:
		d.Notes = append(d.Notes, fmt.Sprintf("%d x-kubernetes-validations rules of version %s are not evaluated", n, v.Name))
	}
}

// validateRules returns what is wrong with an object by the rules in CEL. wrong is what is wrong
// with it by the rest of its schema: rules rely on types and on sizes, from which their cost was
// estimated.
func (d *Definition) validateRules(ctx context.Context, o, old *unstructured.Unstructured, wrong field.ErrorList) field.ErrorList {
	switch {
	case d.evaluate == nil:
		return nil
	case slices.ContainsFunc(wrong, misfits):
		return field.ErrorList{field.Invalid(nil, nil, "the rules of the schema are evaluated once the other errors are corrected")}
	}
	broken, warnings := d.evaluate(ctx, o, old)
	for _, text := range warnings {
		registry.Warn(ctx, text)
	}
	return broken
}

// misfits reports whether an error is of a value that does not have the form that its schema says.
func misfits(err *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
	}, err.Type)
}
