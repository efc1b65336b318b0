package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Forwarder is implemented by backends whose storage is another server of the kind. A
// store over one is a replica: it passes writes on and leaves the rules to that server,
// since rules that run at both could decide differently.
//
// The server compares the UID and the Revision of the options with the object as a part of the write:
// the replica compares them with what it has read, which may have changed since.
//
// The answers are the objects as JSON. Errors match those of [Store], except that a refusal by the
// server's admission cannot be distinguished from one by its authorization, and is
// [backend.ErrDenied]. Bodies belong to the call, even when its context has ended it: they may still
// be on their way.
//
// It never gains methods: what else a server can do is an interface of its own, such as
// [ApplyForwarder].
type Forwarder interface {
	// ForwardCreate stores the object in body, which is JSON.
	ForwardCreate(ctx context.Context, namespace string, body []byte, opts WriteOptions) (answer []byte, err error)
	// ForwardUpdate replaces the object under key, or its subresource. created reports
	// that there was no object.
	ForwardUpdate(ctx context.Context, key, subresource string, body []byte, opts WriteOptions) (answer []byte, created bool, err error)
	// ForwardDelete deletes the object under key, or marks it. If the object is gone,
	// answer is nil, and at is the revision of the deletion or a later one.
	ForwardDelete(ctx context.Context, key string, opts DeleteOptions) (answer []byte, at engine.Revision, err error)
}

// forwarderOf returns b, or the backend that it decorates, if that is a Forwarder;
// otherwise nil.
func forwarderOf(b backend.Backend) Forwarder {
	for b != nil {
		if f, ok := b.(Forwarder); ok {
			return f
		}
		decorator, ok := b.(backend.Unwrapper)
		if !ok {
			return nil
		}
		b = decorator.Unwrap()
	}
	return nil
}

// forwarding is a core that passes writes on.
type forwarding struct{ *core }

// create passes on a creation.
func (f forwarding) create(ctx context.Context, namespace string, body []byte, opts WriteOptions) (*store.Object, error) {
	answer, err := f.forwarder.ForwardCreate(ctx, namespace, body, opts)
	if err != nil {
		return nil, err
	}
	o, err := f.decodeAnswer(answer)
	if err == nil {
		return o, nil
	}
	sent, _ := sentMetaOf(body) // the server has taken it
	return nil, unread("create", f.kind.Key(namespace, cmp.Or(sent.Name, sent.GenerateName)), err)
}

// sentMeta is the metadata of a body that says which object it is, or replaces.
type sentMeta struct{ Name, GenerateName, UID, ResourceVersion string }

func sentMetaOf(body []byte) (sentMeta, error) {
	var o struct{ Metadata sentMeta }
	err := json.Unmarshal(body, &o)
	return o.Metadata, err
}

// unread returns the error of an answer to a write that cannot be read. The server may have done
// the write, and neither the writer nor what it has sent is to blame.
func unread(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, usercode.ErrPanic) {
		err = fmt.Errorf("the server's answer: %v", err)
	}
	return &backend.UncertainError{Verb: verb, Key: key, Cause: err}
}

// update passes on what change returns for the live object. If another write came in between,
// it tries again, unless what change returns is for another object or state than the live
// one, or the same for the newer object. If there is no live object, the result of change is
// passed on as a creation, which replaces nothing.
func (f forwarding) update(ctx context.Context, key, subresource string, change func(live *store.Object) ([]byte, error), opts WriteOptions) (*store.Object, bool, error) {
	var before []byte
	var beforeAt engine.Revision
	for {
		live, err := f.live(ctx, key, f.createOnUpdate && subresource == "", &opts)
		if err != nil {
			return nil, false, err
		}
		body, err := change(live)
		if err != nil {
			return nil, false, err
		}
		this, err := f.checkUpdate(ctx, subresource, live, body, opts)
		if err != nil {
			return nil, false, err
		}
		var o *store.Object
		var created bool
		if live == nil && creates(body, key) {
			namespace, _ := SplitKey(key)
			o, err = f.create(ctx, namespace, body, this)
			created = err == nil
		} else {
			o, created, err = f.replace(ctx, key, subresource, live, body, this)
		}
		conflict := errors.Is(err, engine.ErrConflict) || errors.Is(err, engine.ErrExists)
		if !conflict || f.replacesAnother(body, live) || bytes.Equal(body, before) && this.Revision == beforeAt {
			return o, created, err
		}
		before, beforeAt = body, this.Revision
	}
}

// checkUpdate returns the options to pass body on with. If body does not say which object it replaces, they name the live
// object where the body is made of that, and its state, unless the kind refuses such a body; and where the writer may
// not create: the server, whatever the replica's own rules are, may create the object if it is gone by then. Without a live
// object it returns the refusal.
func (f forwarding) checkUpdate(ctx context.Context, subresource string, live *store.Object, body []byte, opts WriteOptions) (WriteOptions, error) {
	sent, err := sentMetaOf(body)
	refused := f.revisionRequired && subresource != scaleSubresource
	if err == nil && opts.Patched && opts.Revision == 0 && live != nil && noRevision(sent.ResourceVersion) && !refused {
		opts.Revision = live.Revision
	}
	named := err != nil || sent.UID != "" || !noRevision(sent.ResourceVersion) || opts.UID != "" || opts.Revision != 0
	if named || opts.MayCreate == nil || subresource != "" {
		return opts, nil // the server refuses what it cannot read
	}
	refusal := opts.MayCreate(ctx)
	if refusal == nil || live == nil {
		return opts, refusal
	}
	opts.UID = string(f.meta(live).GetUID())
	return opts, nil
}

// replace passes on the new state of the live object, or of one that is to be created if that is nil.
func (f forwarding) replace(ctx context.Context, key, subresource string, live *store.Object, body []byte, opts WriteOptions) (*store.Object, bool, error) {
	answer, created, err := f.forwarder.ForwardUpdate(ctx, key, subresource, body, opts)
	if err != nil {
		return nil, false, err
	}
	if subresource == scaleSubresource {
		o, err := f.decodeScaleAnswer(answer, live)
		return o, false, unread("update", key, err)
	}
	o, err := f.decodeAnswer(answer)
	return o, created, unread("update", key, err)
}

// creates reports whether body is of an object that can be created as it is: it has the name, and does
// not say which object it replaces.
func creates(body []byte, key string) bool {
	_, name := SplitKey(key)
	sent, err := sentMetaOf(body)
	return err == nil && sent.Name == name && sent.UID == "" && sent.ResourceVersion == ""
}

// replacesAnother reports whether body says that it replaces another object than live, or another state
// of it. live is nil if there is no object.
func (f forwarding) replacesAnother(body []byte, live *store.Object) bool {
	var uid, version string
	if live != nil {
		uid, version = string(f.meta(live).GetUID()), live.Revision.String()
	}
	sent, _ := sentMetaOf(body) // the server has read it
	return sent.UID != "" && sent.UID != uid || !noRevision(sent.ResourceVersion) && sent.ResourceVersion != version
}

// live returns the newest object under key, and fails if that is not the one that the options name.
// It returns nil if there is none and the write may create it.
func (f forwarding) live(ctx context.Context, key string, mayCreate bool, opts *WriteOptions) (*store.Object, error) {
	live, err := f.storage.Get(ctx, key)
	switch {
	case err == nil:
		return live, f.checkPreconditions(live, opts.UID, opts.Revision)
	case !errors.Is(err, engine.ErrNotFound), !mayCreate:
		return nil, err
	case opts.UID != "", opts.Revision != 0:
		return nil, noSuchObject(key)
	}
	return nil, nil
}

// delete passes on a deletion. It returns the object as marked, or its last state. After a
// conflict it tries again with the newer object, if there is one.
func (f forwarding) delete(ctx context.Context, key string, opts DeleteOptions) (o *store.Object, gone bool, err error) {
	var conflict error
	var before engine.Revision
	for {
		live, err := f.storage.Get(ctx, key)
		switch {
		case err != nil:
			return nil, false, err
		case conflict != nil && live.Revision == before:
			return nil, false, conflict
		}
		if err := f.checkPreconditions(live, opts.UID, opts.Revision); err != nil {
			return nil, false, err
		}
		this := opts
		this.UID, this.Revision = string(f.meta(live).GetUID()), live.Revision
		answer, at, err := f.forwarder.ForwardDelete(ctx, key, this)
		switch {
		case errors.Is(err, engine.ErrConflict):
			conflict, before = err, live.Revision
			continue
		case err != nil:
			return nil, false, err
		case answer == nil:
			return f.form.schema.Gone(live, max(at, live.Revision), f.now()), true, nil
		}
		o, err := f.decodeAnswer(answer)
		return o, false, unread("delete", key, err)
	}
}

// encodeDraft returns the JSON of a typed draft. A draft that names no revision gets that
// of live: otherwise the server would overwrite other writes.
func (c *core) encodeDraft(draft, live *store.Object) ([]byte, error) {
	version := c.meta(draft).GetResourceVersion()
	if version == "" && live != nil {
		version = live.Revision.String()
	}
	return c.layout.Encode(draft, version, false)
}

// encoded returns a function that encodes the result of produce.
func (c *core) encoded(produce produceFunc) func(live *store.Object) ([]byte, error) {
	return func(live *store.Object) ([]byte, error) {
		draft, err := produce(live)
		if err != nil {
			return nil, err
		}
		return c.encodeDraft(draft, live)
	}
}
