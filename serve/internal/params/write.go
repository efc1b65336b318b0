package params

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
)

// maxManager is the longest name of a field manager, in bytes.
const maxManager = 128

// Write reads the parameters of a write, except those of an apply, of a client with that User-Agent.
func (r Request) Write(userAgent string) (registry.WriteOptions, error) {
	opts, err := r.common()
	if err == nil && r.Verb == "patch" && r.Query.Has("force") {
		err = r.invalid(field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	if opts.Manager == "" {
		opts.Manager = managerOf(userAgent)
	}
	return opts, err
}

// Apply reads the parameters of an apply.
func (r Request) Apply() (registry.WriteOptions, error) {
	opts, err := r.common()
	if err == nil && opts.Manager == "" {
		err = r.invalid(field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
	}
	opts.Force = IsTrue(r.Query, "force")
	return opts, err
}

// managerOf returns the manager of a client that names none: its User-Agent up to the
// version.
func managerOf(userAgent string) string {
	before, _, _ := strings.Cut(userAgent, "/")
	var name []byte
	for _, r := range before {
		if unicode.IsPrint(r) && len(name)+utf8.RuneLen(r) <= maxManager {
			name = utf8.AppendRune(name, r)
		}
	}
	return string(name)
}

// common reads the parameters that all writes have.
func (r Request) common() (registry.WriteOptions, error) {
	opts := registry.WriteOptions{Validation: registry.FieldValidation(r.Query.Get("fieldValidation"))}
	if !opts.Validation.Valid() {
		supported := []registry.FieldValidation{registry.IgnoreUnknown, registry.WarnUnknown, registry.RefuseUnknown}
		return opts, r.invalid(field.NotSupported(field.NewPath("fieldValidation"), opts.Validation, supported))
	}
	opts.Manager = r.Query.Get("fieldManager")
	if wrong := wrongManager(opts.Manager); wrong != nil {
		return opts, r.invalid(wrong)
	}
	var err error
	opts.DryRun, err = r.dryRun(r.Query["dryRun"])
	return opts, err
}

// wrongManager returns what is wrong with the name of a field manager, nil if nothing is.
func wrongManager(name string) *field.Error {
	path := field.NewPath("fieldManager")
	switch {
	case len(name) > maxManager:
		return field.TooLong(path, name, maxManager)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return field.Invalid(path, name, "must have printable characters alone")
	}
	return nil
}
