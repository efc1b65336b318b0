package apiextensions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
)

// cleanup is the finalizer by which a definition stays until the objects of its kind are gone.
const cleanup = "customresourcecleanup.apiextensions.k8s.io"

// configOf returns the configuration of the kind of definitions: the rules of its own definition,
// and those that a schema cannot say.
func configOf(itself *crd.Definition, reading crd.Options) registry.Config[object] {
	cfg := itself.Config()
	cfg.Conversion = nil // they stay as they were stored, even where the rules were others
	cfg.Columns = columns
	bySchema, prune := cfg.Strategy, cfg.Prune
	cfg.Prune = func(o *object) []string { return append(prune(o), pruneSchemas(o)...) }
	cfg.Strategy.Default = func(o *object) {
		bySchema.Default(o)
		setNames(o)
	}
	cfg.Strategy.Prepare = func(_ context.Context, o, old *object) { prepare(o, old) }
	cfg.Strategy.Validate = func(ctx context.Context, o, old *object) field.ErrorList {
		wrong := bySchema.Validate(ctx, o, old)
		if len(wrong) > 0 || isUnchanged(o, old, cfg.Strategy.Default) {
			return wrong
		}
		return validate(reading, o, old)
	}
	cfg.Strategy.Warn = func(_ context.Context, o, old *object) []string {
		if isUnchanged(o, old, cfg.Strategy.Default) {
			return nil
		}
		return notes(reading, o)
	}
	return cfg
}

// isUnchanged reports whether a write leaves what is defined as it was: then it is not for the
// writer to correct, whatever the rules were when it was stored, and whatever their defaults.
func isUnchanged(o, old *object, setDefaults func(*object)) bool {
	if old == nil {
		return false
	}
	before := old.DeepCopy()
	if reflect.DeepEqual(o.Object["spec"], before.Object["spec"]) {
		return true // as in a write of the status, which sets no defaults
	}
	setDefaults(before)
	return reflect.DeepEqual(o.Object["spec"], before.Object["spec"])
}

// setNames sets the names that follow from the kind. It leaves values of a wrong type to
// validation.
func setNames(o *object) {
	names := part(part(o.Object, "spec"), "names")
	kind := text(names, "kind")
	if kind == "" {
		return
	}
	for name, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if names[name] == nil || names[name] == "" {
			names[name] = value
		}
	}
}

// prepare notes the version that is stored, and gives a definition its finalizer, which it may
// lose only while it is being deleted.
func prepare(o, old *object) {
	noteStored(o)
	if old != nil && isDeleting(old) {
		return
	}
	if !slices.Contains(o.GetFinalizers(), cleanup) {
		o.SetFinalizers(append(slices.Clone(o.GetFinalizers()), cleanup))
	}
}

// noteStored adds the version that is stored to those that objects have been stored in.
func noteStored(o *object) {
	stored := texts(part(o.Object, "status"), "storedVersions")
	for _, v := range items(part(o.Object, "spec"), "versions") {
		if name := text(v, "name"); v["storage"] == true && name != "" && !slices.Contains(stored, name) {
			status := maps.Clone(part(o.Object, "status"))
			if status == nil {
				status = map[string]any{}
			}
			list, _ := status["storedVersions"].([]any)
			status["storedVersions"] = append(slices.Clone(list), name)
			o.Object["status"] = status
			return
		}
	}
}

// validate refuses what package crd cannot make a kind of, what clusters refuse, and changes of
// what is fixed.
func validate(reading crd.Options, o, old *object) field.ErrorList {
	now, err := reading.Define(o, old)
	if err != nil {
		return invalid(err)
	}
	wrong := refusedByClusters(o)
	if old == nil {
		return append(wrong, checkSchemas(o, nil)...)
	}
	wrong = append(without(wrong, refusedByClusters(old)), checkSchemas(o, schemaErrors(old))...)
	wrong = append(wrong, checkStored(o, old)...)
	before, err := crd.Define(old)
	if err != nil {
		return wrong // it is not served, so nothing is fixed
	}
	spec := field.NewPath("spec")
	fixed := func(path *field.Path, now, before any) {
		if !reflect.DeepEqual(now, before) {
			wrong = append(wrong, field.Invalid(path, now, "cannot be changed: delete the definition, and create it again"))
		}
	}
	fixed(spec.Child("scope"), now.Kind.ClusterScoped, before.Kind.ClusterScoped)
	if accepted(old).Kind != "" { // otherwise another kind may have the name
		fixed(spec.Child("names", "kind"), now.Kind.Kind, before.Kind.Kind)
	}
	return wrong
}

// checkStored refuses to drop a version that objects may be stored in. It need not be served. The text is Kubernetes', by
// which programs that migrate storage know the error.
func checkStored(o, old *object) (wrong field.ErrorList) {
	has := func(o *object, name string) bool {
		return slices.ContainsFunc(items(part(o.Object, "spec"), "versions"), func(v map[string]any) bool { return v["name"] == name })
	}
	for i, name := range texts(part(old.Object, "status"), "storedVersions") {
		if has(old, name) && !has(o, name) {
			wrong = append(wrong, field.Invalid(field.NewPath("status", "storedVersions").Index(i), name, fmt.Sprintf("missing from spec.versions; "+
				"%[1]s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains "+
				"persisted in %[1]s and removes %[1]s from status.storedVersions", name)))
		}
	}
	return wrong
}

// invalid returns the error of a manifest as errors of its fields.
func invalid(err error) field.ErrorList {
	wrong, rules := (*crd.ManifestError)(nil), (*crd.RulesError)(nil)
	switch {
	case errors.As(err, &rules):
		return rules.Errors
	case errors.As(err, &wrong):
		return field.ErrorList{field.Invalid(field.NewPath(wrong.Field), "", wrong.Problem)}
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}
}

// notes are the warnings for the writer of a definition.
func notes(reading crd.Options, o *object) []string {
	d, err := reading.Define(o, o)
	if err != nil {
		return nil
	}
	if _, err := apply.New(d.Kind, d.Config().Schema); err != nil {
		return append(d.Notes, "server-side apply treats every list as a single field: "+err.Error())
	}
	return d.Notes
}

// isDeleting reports whether a definition is being deleted.
func isDeleting(o *object) bool { return o.GetDeletionTimestamp() != nil }

// isReleased reports whether a definition is being deleted, and the objects of its kind are gone.
func isReleased(o *object) bool { return isDeleting(o) && !slices.Contains(o.GetFinalizers(), cleanup) }
