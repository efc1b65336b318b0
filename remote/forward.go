package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
)

// ForwardCreate has the server create the object in body, which is JSON, by its rules.
// It returns the created object as JSON. When ctx ends the call, the client may still be
// sending: body must not be changed even after that.
//
// Errors: as for [Backend.Put].
func (b *Backend) ForwardCreate(ctx context.Context, namespace string, body []byte, opts registry.WriteOptions) ([]byte, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	if namespace != "" {
		if err := store.ValidateKey(namespace); err != nil {
			return nil, err
		}
	}
	r := &request{method: http.MethodPost, namespace: namespace, query: writeQuery(&opts), body: body}
	a, err := b.do(ctx, r)
	warn(a.header, &opts)
	if err != nil {
		err = outcome("create", b.createdKey(namespace, body), err)
	}
	return a.body, err
}

// createdKey returns the key of the object that body is to create, for an error. If the server
// is to complete the name, the key ends with what is given of it.
func (b *Backend) createdKey(namespace string, body []byte) string {
	var object struct {
		Metadata struct{ Name, GenerateName string }
	}
	_ = json.Unmarshal(body, &object) // a body that does not parse has no name
	return b.kind.Key(namespace, cmp.Or(object.Metadata.Name, object.Metadata.GenerateName))
}

// ForwardUpdate has the server replace the object under key, or its subresource, by the
// one in body, which is JSON. It returns the stored object as JSON, and whether that
// was created. As for ForwardCreate, body must not be changed.
//
// Errors: a [*registry.BadRequestError] for a body that is not an object if opts has a UID or a
// Revision, and as for [Backend.Put].
func (b *Backend) ForwardUpdate(ctx context.Context, key, subresource string, body []byte, opts registry.WriteOptions) (answer []byte, created bool, err error) {
	if err := b.open(); err != nil {
		return nil, false, err
	}
	r, err := named(http.MethodPut, key)
	if err != nil {
		return nil, false, err
	}
	if body, err = withPreconditions(key, body, &opts); err != nil {
		return nil, false, err
	}
	r.subresource, r.query, r.body = subresource, writeQuery(&opts), body
	a, err := b.do(ctx, r)
	warn(a.header, &opts)
	return a.body, a.created(), outcome("update", key, err)
}

// applyPatch is the media type of server-side apply.
const applyPatch = "application/apply-patch+yaml"

// ForwardApply has the server apply a configuration to the object under key, or to its
// subresource. It returns the stored object as JSON, and whether that was created. As for
// ForwardCreate, config must not be changed.
//
// Errors: a [*registry.FieldConflictError] if other managers own fields of config, and as
// for [Backend.ForwardUpdate].
func (b *Backend) ForwardApply(ctx context.Context, key, subresource string, config []byte, opts registry.WriteOptions) (answer []byte, created bool, err error) {
	if err := b.open(); err != nil {
		return nil, false, err
	}
	r, err := named(http.MethodPatch, key)
	if err != nil {
		return nil, false, err
	}
	if config, err = withPreconditions(key, config, &opts); err != nil {
		return nil, false, err
	}
	r.subresource, r.query, r.body, r.media = subresource, writeQuery(&opts), config, applyPatch
	if opts.Force {
		r.query.Set("force", "true")
	}
	a, err := b.do(ctx, r)
	warn(a.header, &opts)
	return a.body, a.created(), outcome("apply", key, err)
}

// ForwardDelete has the server delete the object under key. If the object is only marked,
// because of finalizers or a grace period, answer is its JSON. Otherwise answer is nil
// and at is the revision of the deletion, or a later one if the server does not report it.
//
// Errors: as for [Backend.Put].
func (b *Backend) ForwardDelete(ctx context.Context, key string, opts registry.DeleteOptions) (answer []byte, at store.Revision, err error) {
	if err := b.open(); err != nil {
		return nil, 0, err
	}
	r, err := named(http.MethodDelete, key)
	if err != nil {
		return nil, 0, err
	}
	if r.body, err = json.Marshal(deleteOptions(&opts)); err != nil {
		return nil, 0, err
	}
	a, err := b.do(ctx, r)
	if err != nil {
		return nil, 0, outcome("remove", key, err)
	}
	var d deleted
	if err := json.Unmarshal(a.body, &d); err != nil {
		return nil, 0, unread("remove", key, fmt.Errorf("%s: the server's answer does not parse: %w", b.config.URL, err))
	}
	switch {
	case d.isStatus():
		at, _ = revisionOf(d.Metadata.ResourceVersion) // zero if the server does not report it
	case d.Metadata.Name == "":
		return nil, 0, unread("remove", key, fmt.Errorf("%s: the server's answer is neither a Status nor an object with a name", b.config.URL))
	case d.isMarked():
		return a.body, 0, nil
	}
	if at == 0 { // the newest one is not older than that of the deletion, as the object's may be
		at, err = b.Revision(ctx)
	}
	return nil, at, unread("remove", key, err)
}

// deleted is what a server answers to a deletion: a Status, or an object.
type deleted struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta
	Spec     any
}

// isStatus reports whether the answer is a Status, and not an object of a kind that is called so.
func (d *deleted) isStatus() bool { return d.Kind == "Status" && d.APIVersion == "v1" }

// isMarked reports whether the object is there still, since finalizers or a grace period keep it. Kubernetes
// answers with pods, and objects of some other kinds, although they are gone. A namespace has finalizers in
// its spec, too.
func (d *deleted) isMarked() bool {
	m := &d.Metadata
	spec, _ := d.Spec.(map[string]any)
	more, _ := spec["finalizers"].([]any)
	grace := m.DeletionGracePeriodSeconds
	return m.DeletionTimestamp != nil && (len(m.Finalizers)+len(more) > 0 || grace != nil && *grace > 0)
}

// writeQuery returns the parameters of a write.
func writeQuery(opts *registry.WriteOptions) url.Values {
	q := url.Values{}
	if opts.DryRun {
		q.Set("dryRun", metav1.DryRunAll)
	}
	if opts.Validation != "" {
		q.Set("fieldValidation", string(opts.Validation))
	}
	if opts.Manager != "" {
		q.Set("fieldManager", opts.Manager)
	}
	return q
}

// withPreconditions returns body, an object as JSON or YAML, with the uid and the resourceVersion that
// opts name in its metadata: there the server checks them as a part of the write.
func withPreconditions(key string, body []byte, opts *registry.WriteOptions) ([]byte, error) {
	named := map[string]string{}
	if opts.UID != "" {
		named["uid"] = opts.UID
	}
	if opts.Revision != 0 {
		named["resourceVersion"] = opts.Revision.String()
	}
	if len(named) == 0 {
		return body, nil
	}
	object, meta, err := split(body)
	if err != nil {
		return nil, &registry.BadRequestError{Reason: "the body is not an object: " + err.Error(), Cause: err}
	}
	for field, want := range named {
		quoted, err := json.Marshal(want)
		if err != nil {
			return nil, err
		}
		switch given := string(meta[field]); given {
		case "", "null", `""`, `"0"`, string(quoted):
			meta[field] = quoted
		default:
			return nil, &registry.ConflictError{Key: key, Reason: fmt.Sprintf("Precondition failed: %s is %s in the precondition, and %s in the body", field, quoted, given)}
		}
	}
	if object["metadata"], err = unescaped(meta); err != nil {
		return nil, err
	}
	return unescaped(object)
}

// unescaped returns the JSON of fields as they are: json.Marshal would make six bytes of each <, > and &,
// and the body may then be larger than the server allows.
func unescaped(fields map[string]json.RawMessage) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(fields)
	return text.Bytes(), err
}

// split returns the fields of an object as JSON or YAML, and those of its metadata.
func split(body []byte) (object, meta map[string]json.RawMessage, err error) {
	if json.Unmarshal(body, &object) != nil {
		if body, err = yaml.YAMLToJSONStrict(body); err != nil {
			return nil, nil, err
		}
		if err = json.Unmarshal(body, &object); err != nil {
			return nil, nil, err
		}
	}
	if object == nil {
		return nil, nil, errors.New("it is empty")
	}
	if given := object["metadata"]; given != nil {
		if err = json.Unmarshal(given, &meta); err != nil {
			return nil, nil, err
		}
	}
	if meta == nil { // even if it is null
		meta = map[string]json.RawMessage{}
	}
	return object, meta, nil
}

// deleteOptions returns the body of a deletion.
func deleteOptions(opts *registry.DeleteOptions) *metav1.DeleteOptions {
	o := &metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, GracePeriodSeconds: opts.GracePeriodSeconds,
	}
	if opts.DryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	if opts.Propagation != "" {
		o.PropagationPolicy = &opts.Propagation
	}
	if opts.UID == "" && opts.Revision == 0 {
		return o
	}
	o.Preconditions = &metav1.Preconditions{}
	if opts.UID != "" {
		uid := types.UID(opts.UID)
		o.Preconditions.UID = &uid
	}
	if opts.Revision != 0 {
		version := opts.Revision.String()
		o.Preconditions.ResourceVersion = &version
	}
	return o
}

// warn passes the warnings of an answer to opts.Warn.
func warn(header http.Header, opts *registry.WriteOptions) {
	if opts.Warn == nil {
		return
	}
	warnings, _ := utilnet.ParseWarningHeaders(header["Warning"]) // text that does not parse is not a warning
	for _, w := range warnings {
		opts.Warn(w.Text)
	}
}
