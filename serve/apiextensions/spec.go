package apiextensions

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry/crd"
)

// refusedByClusters returns what Kubernetes refuses in a definition that could be served, except
// in its schemas, so that a definition that works here works in a cluster.
func refusedByClusters(o *object) (wrong field.ErrorList) {
	at := field.NewPath("spec")
	spec := part(o.Object, "spec")
	if group := text(spec, "group"); !strings.Contains(group, ".") {
		wrong = append(wrong, field.Invalid(at.Child("group"), group, "must have a dot"))
	}
	if given(spec, "preserveUnknownFields") {
		wrong = append(wrong, field.Invalid(at.Child("preserveUnknownFields"), true, "must be false: give x-kubernetes-preserve-unknown-fields: true in the schemas"))
	}
	wrong = append(wrong, checkApproval(o, text(spec, "group"))...)
	wrong = append(wrong, checkNames(part(spec, "names"), at.Child("names"))...)
	wrong = append(wrong, checkConversion(part(spec, "conversion"), at.Child("conversion"))...)
	if _, err := crd.Define(allServed(o)); err != nil {
		wrong = append(wrong, invalid(err)...) // of a version that is not served
	}
	for i, v := range items(spec, "versions") {
		wrong = append(wrong, checkVersion(v, at.Child("versions").Index(i))...)
	}
	return wrong
}

// allServed returns the definition with all versions served, so that all are checked.
func allServed(o *object) *object {
	all := o.DeepCopy()
	for _, v := range items(part(all.Object, "spec"), "versions") {
		v["served"] = true
	}
	return all
}

// approval is the annotation by which a definition says that Kubernetes' maintainers have approved
// a kind in one of their groups.
const approval = "api-approved.kubernetes.io"

// checkApproval demands the approval of a kind in a group of Kubernetes.
func checkApproval(o *object, group string) field.ErrorList {
	protected := slices.ContainsFunc([]string{"k8s.io", "kubernetes.io"}, func(domain string) bool {
		return group == domain || strings.HasSuffix(group, "."+domain)
	})
	value := o.GetAnnotations()[approval]
	at := field.NewPath("metadata", "annotations").Key(approval)
	switch link, err := url.Parse(value); {
	case !protected || strings.HasPrefix(value, "unapproved"):
		return nil
	case value == "":
		return field.ErrorList{field.Required(at, "the group is Kubernetes' own: give the address of the approval, or a text that begins with unapproved")}
	case err != nil || link.Host == "" || link.Scheme == "":
		return field.ErrorList{field.Invalid(at, value, "must be an address, or begin with unapproved")}
	}
	return nil
}

// checkNames checks the names that package crd does without.
func checkNames(names map[string]any, at *field.Path) (wrong field.ErrorList) {
	listKind := text(names, "listKind")
	for _, problem := range utilvalidation.IsDNS1035Label(strings.ToLower(listKind)) {
		wrong = append(wrong, field.Invalid(at.Child("listKind"), listKind, problem))
	}
	if listKind == text(names, "kind") {
		wrong = append(wrong, field.Invalid(at.Child("listKind"), listKind, "must not be the kind of the objects, too"))
	}
	for i, category := range texts(names, "categories") {
		for _, problem := range utilvalidation.IsDNS1035Label(category) {
			wrong = append(wrong, field.Invalid(at.Child("categories").Index(i), category, problem))
		}
	}
	return wrong
}

// checkConversion checks what says how versions are converted.
func checkConversion(conversion map[string]any, at *field.Path) (wrong field.ErrorList) {
	strategy := text(conversion, "strategy")
	webhook := part(conversion, "webhook")
	client := part(webhook, "clientConfig")
	_, hasURL := client["url"]
	_, hasService := client["service"]
	reviews := texts(webhook, "conversionReviewVersions")
	switch {
	case strategy != "None" && strategy != "Webhook":
		wrong = append(wrong, field.NotSupported(at.Child("strategy"), strategy, []string{"None", "Webhook"}))
	case strategy == "None" && (client != nil || reviews != nil):
		wrong = append(wrong, field.Forbidden(at.Child("webhook"), "must not be set with the strategy None"))
	case strategy == "Webhook" && hasURL == hasService:
		wrong = append(wrong, field.Required(at.Child("webhook", "clientConfig"), "give either url or service"))
	case strategy == "Webhook" && !slices.Contains(reviews, "v1") && !slices.Contains(reviews, "v1beta1"):
		wrong = append(wrong, field.Required(at.Child("webhook", "conversionReviewVersions"), "give v1, v1beta1 or both"))
	}
	return wrong
}

// checkVersion checks what package crd does without, or takes more than one form of.
func checkVersion(v map[string]any, at *field.Path) (wrong field.ErrorList) {
	if warning, found := v["deprecationWarning"].(string); found {
		unprintable := strings.ContainsFunc(warning, func(r rune) bool { return !unicode.IsPrint(r) })
		if v["deprecated"] != true || warning == "" || len(warning) > 256 || unprintable {
			wrong = append(wrong, field.Invalid(at.Child("deprecationWarning"), warning, "is for deprecated versions only, and must have 1 to 256 printable bytes"))
		}
	}
	for i, column := range items(v, "additionalPrinterColumns") {
		below := at.Child("additionalPrinterColumns").Index(i)
		if path := text(column, "jsonPath"); !strings.HasPrefix(path, ".") {
			wrong = append(wrong, field.Invalid(below.Child("jsonPath"), path, "must begin with a dot"))
		}
		if format := text(column, "format"); format != "" && !slices.Contains(columnFormats, format) {
			wrong = append(wrong, field.NotSupported(below.Child("format"), format, columnFormats))
		}
	}
	return append(wrong, checkSelectable(items(v, "selectableFields"), schemaOf(v), at.Child("selectableFields"))...)
}

// columnFormats are the formats of columns.
var columnFormats = []string{"int32", "int64", "float", "double", "byte", "date", "date-time", "password"}

// maxSelectable is how many fields a version may have that selectors name.
const maxSelectable = 8

// checkSelectable checks the fields that selectors may name: each is a text, a whole number or a
// boolean of the schema.
func checkSelectable(fields []map[string]any, schema map[string]any, at *field.Path) (wrong field.ErrorList) {
	seen := map[string]bool{}
	for i, f := range fields {
		path, of := text(f, "jsonPath"), schema
		for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
			of = part(part(of, "properties"), name)
		}
		if !slices.Contains([]string{"string", "boolean", "integer"}, text(of, "type")) {
			wrong = append(wrong, field.Invalid(at.Index(i).Child("jsonPath"), path, "must be the path of a field of the schema of the type string, boolean or integer"))
		}
		if seen[path] {
			wrong = append(wrong, field.Duplicate(at.Index(i).Child("jsonPath"), path))
		}
		seen[path] = true
	}
	if len(seen) > maxSelectable {
		wrong = append(wrong, field.TooMany(at, len(seen), maxSelectable))
	}
	return wrong
}

// without returns the errors that the definition before does not have.
func without(wrong, before field.ErrorList) (left field.ErrorList) {
	known := errorSet{}
	for _, e := range before {
		known.add(e)
	}
	for _, e := range wrong {
		if !known.has(e) {
			left = append(left, e)
		}
	}
	return left
}

// errorSet is the errors that a definition has, so that one which is older than a rule can be changed.
// It has their hashes: there may be a hundred thousand, with long paths. Nil is an empty one.
type errorSet map[[sha256.Size]byte]bool

func (s errorSet) add(e *field.Error)      { s[hashOf(e)] = true }
func (s errorSet) has(e *field.Error) bool { return s[hashOf(e)] }

// hashOf returns the hash of what an error says. The place of a version in the list does not matter.
func hashOf(e *field.Error) [sha256.Size]byte {
	place := e.Field
	if _, below, found := strings.Cut(place, "spec.versions["); found {
		place = strings.TrimLeft(below, "0123456789")
	}
	return sha256.Sum256([]byte(fmt.Sprint(e.Type, place, e.Detail)))
}
