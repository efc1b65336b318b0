package crd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/internal/excerpt"
	"github.com/watchmill/watchmill/registry/internal/aliases"
)

// ErrManifest matches the errors of manifests.
var ErrManifest = errors.New("invalid CustomResourceDefinition")

// ManifestError reports what is wrong with a manifest.
type ManifestError struct {
	// Name is that of the definition, "" if it has none; Field is the path of the field
	// that is wrong.
	Name, Field string
	// Problem says what is wrong and how to correct it.
	Problem string
}

func (e *ManifestError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s: %s %s", quoted(e.Name), e.Field, e.Problem)
}

// Is makes errors.Is(err, ErrManifest) true.
func (e *ManifestError) Is(target error) bool { return target == ErrManifest }

// maxShown is how many bytes of a text of the file an error shows.
const maxShown = 200

// quoted returns the text in quotes, shortened.
func quoted(text string) string { return strconv.Quote(shortened(text)) }

// shortened returns the text, or its beginning and an ellipsis if it is long: a text of the file
// may be as large as that.
func shortened(text string) string { return excerpt.Of(text, maxShown) }

// endShown is how many bytes of the end of a long path an error shows: a name, and what follows it.
const endShown = maxShown + 100

// place returns a path as an error shows it: its beginning and its end if it is long. Its names are
// shortened.
func place(path string) string {
	if len(path) <= maxShown+endShown {
		return path
	}
	return shortened(path) + strings.ToValidUTF8(path[len(path)-endShown:], "")
}

// maxManifest is the largest file of manifests, in bytes.
const maxManifest = 8 << 20

// manifest is the part of a CustomResourceDefinition that is read.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			Kind       string   `json:"kind"`
			ListKind   string   `json:"listKind"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions   []version `json:"versions"`
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		PreserveUnknownFields bool `json:"preserveUnknownFields"`
	} `json:"spec"`
	Status json.RawMessage `json:"status"` // is the server's to say

	// text is all of it, in JSON, and rules are those of [Options].
	text  json.RawMessage
	rules Rules
	// unknown are the paths of the fields that no manifest has, such as those that are misspelled.
	unknown []string
}

// wrong returns a [*ManifestError] about a field of the manifest.
func (m *manifest) wrong(field, problem string) error {
	return &ManifestError{m.Metadata.Name, field, problem}
}

// version is one version of a manifest.
type version struct {
	Name       string `json:"name"`
	Served     bool   `json:"served"`
	Storage    bool   `json:"storage"`
	Deprecated bool   `json:"deprecated"`
	// Warning is nil if the version is deprecated in the usual words.
	Warning *string `json:"deprecationWarning"`
	Schema  struct {
		OpenAPI json.RawMessage `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Status *struct{}   `json:"status"`
		Scale  *scalePaths `json:"scale"`
	} `json:"subresources"`
	Columns          []column `json:"additionalPrinterColumns"`
	SelectableFields []struct {
		Path string `json:"jsonPath"`
	} `json:"selectableFields"`
}

// title returns what notes call the version.
func (v *version) title() string { return "version " + v.Name }

// column is a column of tables.
type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int    `json:"priority"`
	Path        string `json:"jsonPath"`
}

// scalePaths say where the objects have what the scale subresource shows.
type scalePaths struct {
	Spec     string `json:"specReplicasPath"`
	Status   string `json:"statusReplicasPath"`
	Selector string `json:"labelSelectorPath"`
}

// Options are the options of reading manifests.
type Options struct {
	// Rules has the rules in CEL evaluated. Nil has them noted in [Definition].Notes.
	Rules Rules
}

// Parse reads the CustomResourceDefinitions of a file in YAML or JSON, of which
// there must be at least one. Documents of other kinds are an error. It is [Options.Parse] of no
// options.
//
// Errors: [ErrManifest], as a [*ManifestError] for what is read and wrong.
func Parse(in io.Reader) ([]*Definition, error) { return Options{}.Parse(in) }

// Parse reads the CustomResourceDefinitions of a file in YAML or JSON, of which
// there must be at least one. Documents of other kinds are an error.
//
// Errors: [ErrManifest], as a [*ManifestError] for what is read and wrong, or as a [*RulesError].
func (o Options) Parse(in io.Reader) ([]*Definition, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxManifest {
		return nil, fmt.Errorf("%w: the file is larger than %d bytes", ErrManifest, maxManifest)
	}
	var all []*Definition
	for document, err := range documents(text) {
		if err != nil {
			return nil, err
		}
		d, err := o.define(document)
		if err == nil && len(d.Versions()) == 0 {
			err = document.wrong("spec.versions", "needs one that is served without conversion; give one of them served: true")
		}
		if err == nil {
			err = document.checkRules(nil)
		}
		if err == nil {
			d.Manifest, err = document.object()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the file has no document", ErrManifest)
	}
	return all, nil
}

// Define returns what one CustomResourceDefinition defines, such as one that a client has sent.
// It is [Options.Define] of no options.
//
// Errors: [ErrManifest], as a [*ManifestError].
func Define(o *unstructured.Unstructured) (*Definition, error) { return Options{}.Define(o, nil) }

// Define returns what one CustomResourceDefinition defines. old is the stored one that it
// replaces, nil for a new one. If both define the same, as where old is that very one, its rules
// are not checked: they were when it was stored. A rule that does not compile then refuses every
// object.
//
// Errors: [ErrManifest], as a [*ManifestError] or a [*RulesError].
func (o Options) Define(definition, old *unstructured.Unstructured) (*Definition, error) {
	m := &manifest{}
	text, err := json.Marshal(definition.Object)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if err := m.decode(text); err != nil {
		return nil, err
	}
	d, err := o.define(m)
	if err != nil || old != nil && reflect.DeepEqual(definition.Object["spec"], old.Object["spec"]) {
		return d, err
	}
	return d, m.checkRules(old)
}

// documents ranges over the manifests of a file.
func documents(text []byte) func(yield func(*manifest, error) bool) {
	return func(yield func(*manifest, error) bool) {
		for above, part := range parts(text) {
			m := &manifest{}
			empty, err := m.read(part)
			switch {
			case empty:
				continue
			case err != nil && above > 0:
				err = fmt.Errorf("the document after line %d: %w", above, err)
			}
			if err != nil && !errors.Is(err, ErrManifest) {
				err = fmt.Errorf("%w: %w", ErrManifest, err)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// parts ranges over the documents of a YAML file, some of which may be empty, each with the
// number of lines above it. A document may begin in the line of the separator before it. Directives, such
// as %YAML, come before that, and become comments: no manifest needs another version, or a tag.
func parts(text []byte) func(yield func(above int, part []byte) bool) {
	return func(yield func(int, []byte) bool) {
		var part []byte
		above, lines, begun := 0, 0, false
		for line := range bytes.Lines(text) {
			lines++
			rest, separates := bytes.CutPrefix(line, []byte("---"))
			if !separates {
				if !begun && line[0] == '%' {
					line = append([]byte("#"), line...)
				}
				begun = begun || !isComment(line)
				part = append(part, line...)
				continue
			}
			if !yield(above, part) {
				return
			}
			above, part, begun = lines, nil, !isComment(rest)
			if begun {
				above, part = lines-1, append(part, line...)
			}
		}
		yield(above, part)
	}
}

// isComment reports whether a line has nothing but a comment.
func isComment(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// read fills in m from a document, unless that is empty.
func (m *manifest) read(document []byte) (empty bool, err error) {
	if err := aliases.Check(document); err != nil {
		return false, errors.New(shortened(err.Error()))
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err == nil {
		err = checkOnly(document)
	}
	if err != nil {
		return false, errors.New(shortened(err.Error()))
	}
	if slices.Contains([]string{"null", "{}"}, string(text)) {
		return true, nil
	}
	return false, m.decode(text)
}

// checkOnly refuses a text with more than one document, since only the first would be read. A second one
// begins without a separator after the end of an object in JSON, or of a mapping whose fields are not indented alike.
func checkOnly(text []byte) error {
	in := goyaml.NewDecoder(bytes.NewReader(text))
	_ = in.Decode(&struct{}{}) // the first one, whose errors are told already
	if errors.Is(in.Decode(&struct{}{}), io.EOF) {
		return nil
	}
	return errors.New("there is more after the end of the document: indent its fields alike, and begin another document with a line ---")
}

// decode fills in m from JSON.
func (m *manifest) decode(text []byte) error {
	m.text = text
	strict, err := kjson.UnmarshalStrict(text, m, kjson.DisallowUnknownFields)
	m.unknown = unknownFields(strict)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return m.wrong(cmp.Or(mismatch.Field, "the document"), fmt.Sprintf("is of the type %s; give %s", shortened(mismatch.Value), kindName(mismatch.Type)))
	}
	return err
}

// object returns the whole manifest.
func (m *manifest) object() (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	return o, kjson.UnmarshalCaseSensitivePreserveInts(m.text, &o.Object)
}

// unknownFields returns the paths of fields that no manifest has, from the errors of decoding one. Those
// of metadata and of a conversion have others than are read.
func unknownFields(strict []error) (paths []string) {
	for _, err := range strict {
		unknown, ok := errors.AsType[kjson.FieldError](err)
		if ok && !strings.HasPrefix(unknown.FieldPath(), "metadata.") && !strings.HasPrefix(unknown.FieldPath(), "spec.conversion.") {
			paths = append(paths, place(unknown.FieldPath()))
		}
	}
	return paths
}

// kindName says in YAML's words what a Go type is decoded from.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "a mapping"
}
