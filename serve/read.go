package serve

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/encode"
	"github.com/watchmill/watchmill/serve/internal/params"
	"github.com/watchmill/watchmill/serve/internal/status"
	"github.com/watchmill/watchmill/store/backend"
)

// get answers with one object.
func (c *call) get(ctx context.Context) error {
	read, err := c.params().Get()
	if err != nil {
		return err
	}
	item, err := c.resource.Get(ctx, c.key(), engine.GetOptions{Read: read})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, item)
}

// answer sends one object in the form that the client prefers.
func (c *call) answer(code int, item registry.Item) error {
	var text []byte
	var err error
	switch state := (encode.State{Item: item, Form: c.form}); {
	case c.form.Shape.IsTable():
		text, err = c.asTable(item)
	case item.Revision() == 0: // it is not stored, so no other request has it
		text, err = state.Encode()
	default:
		text, err = c.encodings.ForRead(state)
	}
	if err != nil {
		return err
	}
	c.begin(code)
	c.write(text)
	c.write(newline)
	return nil
}

// asTable returns one object as a table.
func (c *call) asTable(item registry.Item) ([]byte, error) {
	t, err := c.table(c.encodings.Table)
	if err != nil {
		return nil, err
	}
	row, err := t.Row(item)
	if err != nil {
		return nil, err
	}
	version := item.Revision().String()
	if item.Revision() == 0 {
		version = "" // a dry run made the object
	}
	return t.Single(version, row, true)
}

// begin sends the header of an answer in JSON.
func (c *call) begin(code int) {
	c.depart()
	c.w.Header().Set("Content-Type", accept.JSON)
	if c.compress == nil {
		c.w.WriteHeader(code)
		return
	}
	c.w.Header().Add("Vary", "Accept-Encoding")
	if accept.Gzip(c.r.Header) {
		c.w.BeginPacked(code, c.compress)
	} else {
		c.w.WriteHeader(code)
	}
}

var newline = []byte("\n")

// write sends a part of an answer. If the client is gone, the request's context ends, so
// the error needs no handling.
func (c *call) write(text []byte) { _, _ = c.w.Write(text) }

// list answers with a page of objects.
func (c *call) list(ctx context.Context) error {
	o, err := c.params().List()
	if err != nil {
		return err
	}
	opts, err := o.Options()
	if err != nil {
		return err
	}
	page, err := c.resource.List(ctx, opts)
	if err != nil {
		return offerRest(err, o)
	}
	c.setStorageHeader(page.Timeline)
	meta := metav1.ListMeta{ResourceVersion: page.Revision.String(), Continue: o.Seal(page.Continue)}
	if page.Continue != "" && page.Remaining >= 0 {
		remaining := int64(page.Remaining)
		meta.RemainingItemCount = &remaining
	}
	return c.writeList(&page, meta)
}

// offerRest returns the error of a list. If it continues one whose revision is no longer kept, the
// answer has a token for the rest in the newest state, for clients that accept pages of several states.
func offerRest(err error, of *params.List) error {
	expired, is := errors.AsType[*backend.ExpiredContinueError](err)
	if !is {
		return err
	}
	s := status.Expired(err)
	s.ErrStatus.Continue = of.Seal(expired.Continue)
	return s
}

// setStorageHeader sets the header that identifies the storage of the answer's revision.
func (c *call) setStorageHeader(of engine.Timeline) {
	if id := of.Store(); id != "" {
		c.w.Header().Set(registry.StorageHeader, url.PathEscape(id))
	}
}

// itemsPerCheck is how many items of a list are written before the next look at whether the
// client is gone.
const itemsPerCheck = 1000

// listBuffers gather the items of lists: net/http alone would make a write to the socket of
// every four kilobytes.
var listBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// writeList sends a list item by item, so that it needs memory for one item and a buffer besides the
// objects of its state, which it keeps until the end. It breaks the connection off if an item cannot be
// encoded, and if the request's context ends, since the client would take a part of the list for all of
// it. The context ends, too, if the client is gone, so errors of writes need no handling.
func (c *call) writeList(page *registry.Page, meta metav1.ListMeta) error {
	head, encoded, err := c.listForm(meta)
	if err != nil {
		return err
	}
	c.begin(http.StatusOK)
	out := listBuffers.Get().(*bufio.Writer)
	out.Reset(c.w)
	defer func() {
		out.Reset(nil)
		listBuffers.Put(out)
	}()
	_, _ = out.Write(head)
	for i := range page.Len() {
		text, err := encoded(page.Item(i))
		if err != nil {
			c.faults.log(c.log, "an object of a list cannot be encoded", "path", c.req.Path, "error", err)
			panic(http.ErrAbortHandler)
		}
		if i > 0 {
			_ = out.WriteByte(',')
		}
		if i%itemsPerCheck == itemsPerCheck-1 && c.r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = out.Write(text)
	}
	_, _ = out.WriteString("]}\n")
	_ = out.Flush()
	return nil
}

// listForm returns the beginning of a list, and the function that encodes its items.
func (c *call) listForm(meta metav1.ListMeta) (head []byte, item func(registry.Item) ([]byte, error), err error) {
	if !c.form.Shape.IsTable() {
		return c.encodings.List(c.info, c.form, meta)
	}
	t, err := c.table(c.encodings.Table)
	if err != nil {
		return nil, nil, err
	}
	head, err = t.Head(meta, true)
	return head, t.Row, err
}

// table returns the table that the client asks for, as newTable makes it.
func (c *call) table(newTable func(of *registry.Info, include string, as accept.Form) (*encode.Table, error)) (*encode.Table, error) {
	return newTable(c.info, c.req.query.Get("includeObject"), c.form)
}
