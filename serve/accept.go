package serve

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/serve/internal/status"
)

const (
	jsonType  = "application/json"
	sseType   = "text/event-stream"
	metaGroup = "meta.k8s.io"
)

// shape is the form of the objects in an answer.
type shape uint8

const (
	whole shape = iota
	table
	betaTable // table in version v1beta1 of its group, which differs only in name
	partial
	aggregated // of discovery
	sse        // whole, as Server-Sent Events
)

// isTable reports whether it is a table, in either version.
func (s shape) isTable() bool { return s == table || s == betaTable }

// clause is one alternative of an Accept header.
type clause struct {
	media   string
	params  map[string]string
	quality float64
}

// clauses returns the alternatives of an Accept header, the best first. It drops clauses
// that do not parse.
func clauses(header []string) []clause {
	var all []clause
	for text := range strings.SplitSeq(strings.Join(header, ","), ",") {
		media, params, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		c := clause{media, params, 1}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			c.quality = q
		}
		if c.quality > 0 {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	return all
}

// acceptsJSON reports whether a clause asks for JSON, or leaves the form to the server.
func (c *clause) acceptsJSON() bool {
	return c.media == jsonType || c.media == "application/*" || c.media == "*/*"
}

// discoveryShape returns what a clause asks for in discovery; ok is false if that is not served.
func (c *clause) discoveryShape() (s shape, ok bool) {
	if !c.acceptsJSON() {
		return 0, false
	}
	as, group, version := c.params["as"], c.params["g"], c.params["v"]
	if as == "" {
		return whole, true
	}
	return aggregated, as == "APIGroupDiscoveryList" && group == "apidiscovery.k8s.io" && version == "v2"
}

// watchShape is objectShape for a watch.
func (c *clause) watchShape() (s shape, ok bool) {
	if c.media == sseType {
		return sse, true
	}
	return c.objectShape()
}

// objectShape returns the shape of objects that a clause asks for; ok is false if that is not served.
func (c *clause) objectShape() (s shape, ok bool) {
	if !c.acceptsJSON() {
		return 0, false
	}
	as, group, version := c.params["as"], c.params["g"], c.params["v"]
	switch {
	case as == "":
		return whole, true
	case as == "Table" && group == metaGroup && version == "v1beta1":
		return betaTable, true
	case group != metaGroup || version != "v1":
		return 0, false
	case as == "Table":
		return table, true
	case as == "PartialObjectMetadata", as == "PartialObjectMetadataList":
		return partial, true
	}
	return 0, false
}

// lean reports whether a clause asks for objects without their managed fields. The
// parameter may name other fields too, which are kept.
func (c *clause) lean() bool {
	return slices.Contains(strings.Split(c.params["drop"], "+"), "metadata.managedFields")
}

// negotiate returns the shape that the client prefers of those that shapeOf finds, and whether
// objects are lean. The error is a Status.
func negotiate(r *http.Request, shapeOf func(*clause) (shape, bool)) (as shape, lean bool, err error) {
	header := r.Header.Values("Accept")
	if strings.TrimSpace(strings.Join(header, "")) == "" {
		return whole, false, nil
	}
	for _, c := range clauses(header) {
		if s, ok := shapeOf(&c); ok {
			return s, c.lean(), nil
		}
	}
	return 0, false, status.New(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+jsonType+", also as Table or PartialObjectMetadata of meta.k8s.io/v1; for watches "+sseType, 0)
}
