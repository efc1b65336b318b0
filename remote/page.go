package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// page is a page of a list, whose objects are decoded one by one as they arrive.
type page struct {
	metadata metav1.ListMeta
	revision store.Revision // of metadata
	// objects are those with the prefix of the request.
	objects []*store.Object
	// storage identifies the server's storage, "" if it does not say.
	storage string
	// size is how many bytes the page has.
	size int
}

// page requests a page of a list.
func (b *Backend) page(ctx context.Context, r *request, query url.Values) (*page, error) {
	b.selectors(query, r.only)
	p := &page{objects: []*store.Object{}}
	r.query, r.read = query, func(body *arriving) error {
		in := &pageReader{page: p, backend: b, request: r, body: body, values: newValues(body)}
		return in.read()
	}
	a, err := b.do(ctx, r)
	if err != nil {
		return nil, err
	}
	p.storage = a.storage
	return p, nil
}

// pageReader reads a page from the answer to a request.
type pageReader struct {
	*page
	*values
	backend *Backend
	request *request
	body    *arriving
	// refused is why what was read is refused, if its text is right.
	refused error
}

// read reads the whole answer.
func (r *pageReader) read() error {
	if err := r.readList(); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return cmp.Or(r.refused, r.body.failed, fmt.Errorf("%s: the server's list does not parse: %w", r.backend.config.URL, err))
	}
	r.size = r.body.size
	return r.takeRevision() // there may be no metadata
}

func (r *pageReader) readList() error {
	if err := r.expect('{'); err != nil {
		return err
	}
	if err := r.members('}', r.readField); err != nil {
		return err
	}
	switch c, err := r.peek(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("there is %q after it", c)
	}
}

func (r *pageReader) readField() error {
	var name string
	if err := r.value(&name); err != nil {
		return err
	}
	if err := r.expect(':'); err != nil {
		return err
	}
	switch name {
	case "metadata":
		return r.readMetadata()
	case "items":
		return r.readItems()
	}
	return r.value(new(json.RawMessage)) // which has to be JSON
}

// readMetadata reads the metadata of the list, which servers send before the objects. So the revision is known
// long before the last of them.
func (r *pageReader) readMetadata() error {
	if err := r.value(&r.metadata); err != nil {
		return err
	}
	if r.refused = r.takeRevision(); r.refused == nil && r.request.revised != nil {
		r.refused = r.body.pauseFor(func() error { return r.request.revised(r.revision) })
	}
	return r.refused
}

// takeRevision takes the revision from the metadata.
func (r *pageReader) takeRevision() (err error) {
	if r.revision, err = revisionOf(r.metadata.ResourceVersion); err != nil {
		return fmt.Errorf("%s: the server's list: %w", r.backend.config.URL, err)
	}
	return nil
}

func (r *pageReader) readItems() error {
	r.objects = r.objects[:0]
	switch c, err := r.peek(); {
	case err != nil:
		return err
	case c == 'n': // of null
		return r.value(new(json.RawMessage))
	}
	if err := r.expect('['); err != nil {
		return err
	}
	return r.members(']', r.readObject)
}

func (r *pageReader) readObject() error {
	text, err := r.next()
	if err != nil {
		return err
	}
	o, err := r.backend.decode(text, time.Time{}) // which keeps nothing of text
	if err != nil {
		r.refused = err
		return err
	}
	if store.HasPrefix(o.Key, r.request.prefix) {
		r.objects = append(r.objects, o)
	}
	return nil
}

// value reads a value into v.
func (r *pageReader) value(v any) error {
	text, err := r.next()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// list returns the page as a list, of the last storage if it does not name another.
func (p *page) list(last string) *backend.List {
	list := &backend.List{Revision: p.revision, Items: p.objects, StoreID: cmp.Or(p.storage, last)}
	if p.metadata.Continue != "" {
		list.Continue, list.Remaining = tokenMark+p.metadata.Continue, -1
	}
	if n := p.metadata.RemainingItemCount; n != nil && *n >= 0 {
		list.Remaining = int(*n)
	}
	return list
}
