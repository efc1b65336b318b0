package registry

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/internal/jsonlimit"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Format turns the objects of one kind into the JSON of the protocol and back, for
// storage that speaks it. Its methods are safe for concurrent use.
type Format struct{ of *form }

// FormatOf returns the format of the kind that cfg describes.
//
// Errors: [engine.ErrConfig], as an [*engine.ConfigError] that names the field.
func FormatOf[T any, P Ptr[T]](cfg Config[T]) (*Format, error) {
	cfg.Kind = cfg.Kind.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Format{formOf[T, P](&cfg)}, nil
}

// Kind returns the kind, with its Plural and Singular even where they follow from Kind.
func (f *Format) Kind() Kind { return f.of.kind }

// Schema returns the schema of the kind's objects.
func (f *Format) Schema() store.Schema { return f.of.schema }

// Meta returns the metadata of o's value. Its resourceVersion is empty.
func (f *Format) Meta(o *store.Object) metav1.Object { return f.of.meta(o) }

// Encode returns o as JSON with the given resourceVersion, "" for none. A panic in a
// function of the kind is an [*usercode.PanicError].
func (f *Format) Encode(o *store.Object, resourceVersion string) ([]byte, error) {
	return f.of.layout.Encode(o, resourceVersion, false)
}

// Decode returns the object in body, which is JSON. The object's revision is the
// resourceVersion, which is removed from the value.
//
// Errors: [*BadRequestError], [engine.ErrInvalidKey], or a panic in a function of the
// kind as an [*usercode.PanicError].
func (f *Format) Decode(body []byte) (*store.Object, error) {
	o, err := f.of.decodeAnswer(body)
	if err == nil && o.Revision == 0 {
		return nil, badRequest("there is no resourceVersion: the server must give decimal numbers that grow")
	}
	return o, err
}

// answeredRevision returns the revision that a server has answered, or otherwise if it has answered
// none.
func answeredRevision(text string, otherwise engine.Revision) (engine.Revision, error) {
	if text == "" {
		return otherwise, nil
	}
	rev, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badRequest("resourceVersion is %q: the server must give decimal numbers that grow", text)
	}
	return engine.Revision(rev), nil
}

// decodeAnswer is Decode for a body that may have no resourceVersion, such as the answer
// to a dry run.
func (f *form) decodeAnswer(body []byte) (*store.Object, error) {
	if err := refused(jsonlimit.CheckDepth(body)); err != nil {
		return nil, err
	}
	o := f.schema.New()
	if _, err := f.layout.Decode(body, o); err != nil {
		return nil, f.undecodable("the JSON", err)
	}
	if err := f.checkKind(o); err != nil {
		return nil, err
	}
	f.setTypeMeta(o)
	m := f.meta(o)
	var err error
	if o.Revision, err = answeredRevision(m.GetResourceVersion(), 0); err != nil {
		return nil, err
	}
	m.SetResourceVersion("")
	if err := usercode.Call("Schema.Key", m.GetName(), func() { o.Key = f.schema.Key(o) }); err != nil {
		return nil, err
	}
	if err := store.ValidateKey(o.Key); err != nil {
		return nil, err
	}
	return o, backend.Describe(&f.schema, o)
}
