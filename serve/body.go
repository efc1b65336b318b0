package serve

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/inflight"
	"github.com/watchmill/watchmill/serve/internal/status"
	"github.com/watchmill/watchmill/usercode"
)

// body is the body of a request, of which it knows how much was read. It is not put in the place of the request's
// own, by whose type net/http knows whether the client has to be asked for it.
type body struct {
	io.ReadCloser
	bytes int64
	ended bool // all of it was read
}

// newBody returns the body of a request, nil if there is none.
func newBody(r *http.Request) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &body{ReadCloser: r.Body}
}

// Read reads the body. That it ends too early, or is not in chunks as its head says, is a Status: the client's fault.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	switch {
	case err == io.EOF:
		b.ended = true
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		err = status.BadRequest("the body cannot be read: %v", err)
	}
	return n, err
}

// mustArrive gives the client the time of a write to send the body, whatever reads it. The time ends
// with the body: net/http removes the deadline then. It has no effect on a connection without deadlines.
func (c *call) mustArrive() {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.limits.WriteTimeout))
}

// skipBody reads the body of a request that reads, and needs none. Over HTTP/1.1 net/http would read it when
// the answer begins: the request would have its place for as long as the client sends nothing.
func (c *call) skipBody() error {
	if c.w.OfStream() || c.body == nil || !c.req.reads() {
		return nil
	}
	_, err := io.Copy(io.Discard, http.MaxBytesReader(c.w, c.body, c.limits.BodyBytes))
	return err
}

// readBody reads the body of a write, which has no place among the writes meanwhile.
func (c *call) readBody() ([]byte, error) {
	if c.body == nil {
		return nil, nil
	}
	c.mustArrive()
	if err := c.limiter.Arrive(c); err != nil {
		return nil, asRefusal(err)
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.body, c.limits.BodyBytes))
	if err := c.limiter.Arrived(c, err); err != nil {
		if errors.Is(err, inflight.ErrGivenUp) && !c.w.OfStream() {
			c.w.Header().Set("Connection", "close") // nothing more can be read from it
		}
		return nil, asRefusal(err)
	}
	return text, nil
}

// leaveUnread gives up the place of a write that fails before its body was read. Over HTTP/1.1
// net/http reads that when the answer begins, for as long as it may take to arrive.
func (c *call) leaveUnread() {
	if c.w.OfStream() || c.body == nil || c.body.ended {
		return
	}
	if c.limiter.Arrive(c) != nil {
		c.w.Header().Set("Connection", "close") // so that net/http does not read it
	}
}

// readAs reads the request's body, whose media type must be among accepted.
func (c *call) readAs(accepted ...string) (text []byte, media string, err error) {
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, "", status.New(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Sprintf("the body has the Content-Encoding %q: send it without one", encoding), 0)
	}
	media = accepted[0]
	if header := c.r.Header.Get("Content-Type"); header != "" {
		if media, _, err = mime.ParseMediaType(header); err != nil {
			return nil, "", unsupportedMedia(strconv.Quote(header), accepted)
		}
	}
	if !slices.Contains(accepted, media) {
		return nil, "", unsupportedMedia(strconv.Quote(media), accepted)
	}
	text, err = c.readBody()
	return text, media, err
}

// readJSON reads the request's body as JSON, from any media type that the kind decodes.
func (c *call) readJSON() ([]byte, error) {
	decoders := c.info.Decoders
	text, media, err := c.readAs(append([]string{accept.JSON}, slices.Sorted(maps.Keys(decoders))...)...)
	decode := decoders[media]
	if err != nil || decode == nil || len(text) == 0 {
		return text, err
	}
	var document []byte
	if panicked := usercode.Call("Config.Decoders", media, func() { document, err = decode(text) }); panicked != nil {
		return nil, panicked
	}
	if err != nil {
		return nil, status.BadRequest("the body is not valid %s: %v", media, err)
	}
	if most := c.limits.objectBytes(); int64(len(document)) > most { // a few bytes of protobuf may be many of JSON
		return nil, &http.MaxBytesError{Limit: most}
	}
	return document, nil
}

func unsupportedMedia(what string, accepted []string) error {
	return status.New(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request was in an unknown format (%s) - accepted media types include: %s", what, strings.Join(accepted, ", ")), 0)
}
