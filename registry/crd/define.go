package crd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/internal/fielderrors"
)

// Definition is a kind that a manifest defines, in one of its versions.
type Definition struct {
	// Kind names it.
	Kind registry.Kind
	// Notes name the parts of the manifest that have no effect, or not all that they promise, a sentence each.
	Notes []string
	// Manifest is what [Parse] has read, and must not be changed; nil if [Define] has made d, and for the
	// other versions.
	Manifest *unstructured.Unstructured

	others    []*Definition
	unserved  bool // no version is served
	forms     *forms
	schema    *schema
	validator *validator
	raw       json.RawMessage
	columns   []registry.Column[unstructured.Unstructured]
	fields    map[string]func(*unstructured.Unstructured) string // of all versions
	// selectable are those of the fields that selectors of this version may name.
	selectable []string
	scale      *registry.Scale[unstructured.Unstructured]
	scaled     *scaleFields // nil if there is no scale
	evaluate   Evaluate     // nil if no rules in CEL are evaluated
	// deprecated is the warning for clients of the version.
	deprecated string
}

// define reads one manifest.
func (o Options) define(m *manifest) (*Definition, error) {
	m.rules = o.Rules
	if m.Kind != "CustomResourceDefinition" || m.APIVersion != "apiextensions.k8s.io/v1" {
		return nil, m.wrong("kind", fmt.Sprintf("is %s of apiVersion %s; give a CustomResourceDefinition of apiextensions.k8s.io/v1", quoted(m.Kind), quoted(m.APIVersion)))
	}
	s := &m.Spec
	if s.Scope != "Namespaced" && s.Scope != "Cluster" {
		return nil, m.wrong("spec.scope", fmt.Sprintf("is %s; give Namespaced or Cluster", quoted(s.Scope)))
	}
	if err := errors.Join(m.checkNames(), m.checkVersions()); err != nil {
		return nil, err
	}
	if want := s.Names.Plural + "." + s.Group; m.Metadata.Name != want {
		return nil, m.wrong("metadata.name", fmt.Sprintf("must be %q: plural and group", want))
	}
	v := m.stored()
	if v == nil {
		return nil, m.wrong("spec.versions", "needs one that is stored; give one of them storage: true")
	}
	d, err := m.ofVersion(v)
	if err != nil {
		return nil, err
	}
	d.noteFields(m)
	if err := d.addOthers(m, v); err != nil {
		return nil, err
	}
	m.addForms(d.Versions())
	d.unserved = !v.Served
	if v.Served || len(d.others) == 0 {
		return d, nil
	}
	first := d.others[0]
	first.others, first.Notes = d.others[1:], d.Notes
	return first, nil
}

// ofVersion makes the definition of one version.
func (m *manifest) ofVersion(v *version) (*Definition, error) {
	s := &m.Spec
	d := &Definition{
		Kind: registry.Kind{
			Group: s.Group, Version: v.Name, Kind: s.Names.Kind, Plural: s.Names.Plural, Singular: s.Names.Singular,
			ListKind: s.Names.ListKind, ShortNames: s.Names.ShortNames, Categories: s.Names.Categories,
			ClusterScoped: s.Scope == "Cluster", Status: v.Subresources.Status != nil,
		},
		raw: v.Schema.OpenAPI,
	}
	if v.Deprecated {
		d.deprecated = m.deprecation(v)
	}
	if err := d.readSchema(m, v); err != nil {
		return nil, err
	}
	if err := d.readScale(m, v); err != nil {
		return nil, err
	}
	return d, d.readPaths(m, v)
}

// deprecation returns the warning for clients of a deprecated version: that of the manifest or, in
// Kubernetes' words, that it is deprecated, with the newest version above it that is not.
func (m *manifest) deprecation(of *version) string {
	if of.Warning != nil {
		return *of.Warning
	}
	newest := ""
	for _, v := range m.Spec.Versions {
		if v.Served && !v.Deprecated && apiversion.CompareKubeAwareVersionStrings(v.Name, cmp.Or(newest, of.Name)) > 0 {
			newest = v.Name
		}
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", m.Spec.Group, of.Name, m.Spec.Names.Kind)
	if newest != "" {
		text += fmt.Sprintf("; use %s/%s %s", m.Spec.Group, newest, m.Spec.Names.Kind)
	}
	return text
}

// addOthers adds the other versions that are served. Storage knows the objects by the fields that
// selectors may name, so all versions have those of each, even of one that is not served, but may be.
func (d *Definition) addOthers(m *manifest, stored *version) error {
	for i := range m.Spec.Versions {
		v := &m.Spec.Versions[i]
		if v == stored {
			continue
		}
		fields, err := m.selectable(v)
		if err != nil {
			return err
		}
		maps.Copy(d.fields, fields)
		switch {
		case !v.Served:
			continue
		case m.converts():
			d.Notes = append(d.Notes, fmt.Sprintf("version %s is not served: there is no conversion by %s, and %s is the one that is stored", v.Name, shortened(m.Spec.Conversion.Strategy), stored.Name))
			continue
		}
		other, err := m.ofVersion(v)
		if err != nil {
			return err
		}
		d.others = append(d.others, other)
		d.Notes = append(d.Notes, other.Notes...)
	}
	for _, other := range d.others {
		maps.Copy(other.fields, d.fields)
	}
	return nil
}

// converts reports whether the versions have to be converted into each other.
func (m *manifest) converts() bool {
	return !slices.Contains([]string{"", "None"}, m.Spec.Conversion.Strategy)
}

// Versions returns a definition for each version that is served. If [Parse] or [Define] has made d,
// and the stored version is served, the first is d, which is of that version. The definitions are of
// the same objects, so their stores must have one backend, or backends of one storage. There is none
// if [Define] has made d of a definition of which no version is served.
func (d *Definition) Versions() []*Definition {
	if d.unserved {
		return nil
	}
	return append([]*Definition{d}, d.others...)
}

// Schemas returns the OpenAPI schemas of all versions, including those that are not served, by
// version; none if the versions differ in more than their schemas. They are for the Versions of
// package registry/apply, and must not be changed.
func (d *Definition) Schemas() map[string]json.RawMessage { return d.forms.texts }

// stored returns the storage version, nil if there is none.
func (m *manifest) stored() *version {
	for i := range m.Spec.Versions {
		if m.Spec.Versions[i].Storage {
			return &m.Spec.Versions[i]
		}
	}
	return nil
}

// readSchema makes pruning, defaults and validation from the schema.
func (d *Definition) readSchema(m *manifest, v *version) error {
	if len(v.Schema.OpenAPI) == 0 {
		return m.wrong("spec.versions.schema.openAPIV3Schema", "is missing; give at least {type: object}")
	}
	var err error
	if d.schema, err = m.schemaOf(v); err == nil {
		d.validator, err = newValidator(v.Schema.OpenAPI, d.schema)
	}
	if err == nil {
		err = d.noteKeywords(v)
	}
	if err != nil {
		return m.wrong("spec.versions.schema.openAPIV3Schema", "cannot be used: "+err.Error())
	}
	d.noteFormats(d.validator.ignored, v)
	d.noteSets(v)
	d.readRules(m, v)
	return nil
}

// schemaOf returns the schema of a version.
func (m *manifest) schemaOf(v *version) (*schema, error) {
	s, err := parseSchema(v.Schema.OpenAPI)
	if err != nil {
		return nil, err
	}
	s.Open = s.Open || m.Spec.PreserveUnknownFields
	return s, nil
}

// shownColumns returns the columns of the version: as in Kubernetes, the age if it names none.
func (v *version) shownColumns() []column {
	if len(v.Columns) > 0 {
		return v.Columns
	}
	return []column{{Name: "Age", Type: "date", Description: "Time since the object was created.", Path: ".metadata.creationTimestamp"}}
}

// readPaths makes columns and fields from their paths.
func (d *Definition) readPaths(m *manifest, v *version) error {
	if err := m.checkColumns(v); err != nil {
		return err
	}
	for _, c := range v.shownColumns() {
		p, err := parsePath(c.Path)
		if errors.Is(err, errNotUnderstood) { // Kubernetes takes any text, and may not show the columns either
			d.Notes = append(d.Notes, fmt.Sprintf("the column %s of version %s is not shown: its jsonPath %v", shortened(c.Name), v.Name, err))
			continue
		}
		if err != nil {
			return m.wrong(fmt.Sprintf("the jsonPath of the column %s", quoted(c.Name)), err.Error())
		}
		d.columns = append(d.columns, registry.Column[unstructured.Unstructured]{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
			Value: func(o *unstructured.Unstructured) any { return cell(p.find(o.Object), c.Type) },
		})
	}
	var err error
	d.fields, err = m.selectable(v)
	d.selectable = slices.Collect(maps.Keys(d.fields))
	d.noteSelectable(v)
	return err
}

// Config returns the configuration of a store of the kind. The fields that it leaves
// zero, such as Engine, can be set.
func (d *Definition) Config() registry.Config[unstructured.Unstructured] {
	return registry.Config[unstructured.Unstructured]{
		Kind: d.Kind, StorageVersion: d.forms.stored, Columns: d.columns, NoAge: true, Fields: d.fields, HiddenFields: d.hidden(), Scale: d.scale, Schema: d.raw,
		Conversion: d.conversion(), Deprecated: d.deprecated,
		Prune: func(o *unstructured.Unstructured) []string { return d.schema.pruneRoot(o.Object) },
		Strategy: registry.Strategy[unstructured.Unstructured]{
			RevisionRequired: true, StatusOnly: true, // as for every custom resource
			Default: func(o *unstructured.Unstructured) { d.schema.setDefaults(o.Object) },
			Validate: func(ctx context.Context, o, old *unstructured.Unstructured) field.ErrorList {
				if wrong := d.schema.checkDefaulted(o); len(wrong) > 0 {
					return wrong
				}
				wrong := fielderrors.First(d.validateSchema(o, old))
				return append(wrong, d.validateRules(ctx, o, old, wrong)...)
			},
			Warn: func(_ context.Context, o, old *unstructured.Unstructured) []string { return finalizerWarnings(o, old) },
		},
	}
}
